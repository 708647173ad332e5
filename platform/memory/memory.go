// Package memory answers: how much memory does this system have, how much more may this process hold, and what becomes of
// what it holds when there is too little?
//
// An answer comes with where it was read, for a person; an error is the reason why there is none, which is not a "no".
//
// It must not know what the memory is for, nor keep any margin.
package memory

import "fmt"

// Facts is one reading. The figures move while other processes run. Sizes are bytes.
type Facts struct {
	Total     int64  // physical memory of the system
	Available int64  // what this process may still hold: the least of what the system and each of its limits leave
	Limit     int64  // the tightest limit on this process, or on a group it is in; 0 when there is none
	Why       string // which figure decided Available, for people
}

// Read takes a reading now. It costs some tens of microseconds.
func Read() (Facts, error) {
	f, err := read()
	if err != nil {
		return Facts{}, fmt.Errorf("read how much memory there is: %w", err)
	}
	return f, nil
}

// Ends says whether this process has a share of its own that it is ended for exceeding, before anything is swapped out.
func Ends() (yes bool, from string, err error) {
	yes, from, err = ends()
	return yes, from, because("whether this process is ended for holding too much", err)
}

// Compresses says whether the system compresses this process's anonymous memory before it does anything dearer.
func Compresses() (yes bool, from string, err error) {
	yes, from, err = compresses()
	return yes, from, because("whether memory is compressed", err)
}

// Swaps says whether the system may write this process's anonymous memory to storage.
func Swaps() (yes bool, from string, err error) {
	yes, from, err = swaps()
	return yes, from, because("whether there is swap", err)
}

// CompressorRatio is how many bytes of anonymous memory the system's compressor holds per byte that they take now. It is at
// least 1, and not known while the compressor holds nothing.
func CompressorRatio() (ratio float64, from string, err error) {
	ratio, from, err = compressorRatio()
	if err != nil {
		return 0, "", because("how far memory compresses", err)
	}
	return max(1, ratio), from, nil
}

// IdleAnonymous is how many bytes of anonymous memory nobody touched lately, of all processes that this one could take
// memory from: what the system would compress first.
func IdleAnonymous() (bytes int64, from string, err error) {
	bytes, from, err = idleAnonymous()
	return bytes, from, because("how much memory is idle", err)
}

// because puts what was asked before the reason why there is no answer.
func because(asked string, err error) error {
	if err != nil {
		return fmt.Errorf("%s is not known: %w", asked, err)
	}
	return nil
}
