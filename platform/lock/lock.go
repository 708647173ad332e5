// Package lock answers: how much memory may this process keep from being taken back, locked where it is or out of a store
// made for that?
//
// Every figure is bytes, net of what is locked already by anyone that its limit counts. An answer comes with where it was
// read, for a person; an error is the reason why there is none: it is not an answer of 0, which means that nothing is granted.
//
// It must not know what the memory is for, nor keep any margin.
package lock

import "fmt"

// InPlace is how many bytes may still be locked where they are, by [pages.Region.Lock].
func InPlace() (bytes int64, from string, err error) {
	bytes, from, err = inPlace()
	if err != nil {
		return 0, "", fmt.Errorf("how much may be locked where it is is not known: %w", err)
	}
	return bytes, from, nil
}

// Store says whether there is an allocation, by Alloc, that is never reclaimed.
func Store() (yes bool, from string, err error) {
	yes, from, err = store()
	if err != nil {
		return false, "", fmt.Errorf("whether memory can be kept from reclaim is not known: %w", err)
	}
	return yes, from, nil
}

// StoreTotal is how many bytes Alloc may still give. Where the store is the same lock, it is what InPlace answers, and what
// one takes is gone from the other. A store that publishes no total gives an error.
func StoreTotal() (bytes int64, from string, err error) {
	bytes, from, err = storeTotal()
	if err != nil {
		return 0, "", fmt.Errorf("how much may be kept from reclaim is not known: %w", err)
	}
	return bytes, from, nil
}

// Block is memory out of the store: readable, writable, zeroed, never reclaimed, at a fixed address.
type Block struct{ held }

// Alloc takes n bytes out of the store, all of them or none.
func Alloc(n int) (*Block, error) {
	if n <= 0 {
		return nil, fmt.Errorf("take %d bytes that are never reclaimed: the size must be positive", n)
	}
	h, err := alloc(n)
	if err != nil {
		return nil, fmt.Errorf("take %d MiB that are never reclaimed: %w", n>>20, err)
	}
	return &Block{h}, nil
}

// held is what a system gives for a Block.
type held interface {
	// Bytes is the memory, exactly as long as was asked for; nil after Free.
	Bytes() []byte
	// Base is the address of the first byte, a multiple of the page size; 0 after Free.
	Base() uintptr
	// Free gives it back; Bytes taken earlier must not be touched again. Freeing twice is no error.
	Free() error
}
