// Package pages answers: how does this process hold large pieces of memory outside the Go heap, and keep them in place?
//
// A Region is address space of its own: reserved without access, or readable and writable. It never moves, the garbage
// collector does not see it, and its pages can be locked, given back and asked to be huge.
//
// It must not know what the memory is for.
package pages

import (
	"errors"
	"fmt"
	"os"
	"reflect"
)

// HugeSize is the alignment of every Region of at least this many bytes: the huge page of x86-64 and of arm64 with 4 KiB pages.
const HugeSize = 2 << 20

// ErrLockLimit is in the chain of a Lock's error when the system allows this process no more locked memory.
var ErrLockLimit = errors.New("the system allows this process no more locked memory")

// Size is the system's page size in bytes.
func Size() int { return os.Getpagesize() }

// Region is one piece of anonymous memory. Its methods may be called by several goroutines, except Free.
type Region struct {
	mapping []byte // everything that the system gave
	bytes   []byte // the aligned part of it, as long as was asked for
	access  bool
	huge    bool
}

// Reserve takes n bytes of address space that nothing may read or write: touching Bytes ends the process.
// No memory is committed to it.
func Reserve(n int) (*Region, error) { return newRegion(n, false) }

// Alloc takes n bytes of readable, writable, zeroed memory. From HugeSize up it is aligned to HugeSize and huge pages
// are asked for where the system offers them. A page costs memory once it is touched.
func Alloc(n int) (*Region, error) { return newRegion(n, true) }

func newRegion(n int, access bool) (*Region, error) {
	if n <= 0 {
		return nil, fmt.Errorf("take %d bytes of memory: the size must be positive", n)
	}
	align := Size()
	if n >= HugeSize {
		align = max(align, HugeSize)
	}
	r := &Region{access: access}
	if err := r.take(n, align); err != nil {
		return nil, fmt.Errorf("take %d MiB of memory: %w", n>>20, err)
	}
	if access && n >= HugeSize {
		r.huge = r.askHuge()
	}
	return r, nil
}

// Bytes is the memory, exactly as long as was asked for; nil after Free.
func (r *Region) Bytes() []byte { return r.bytes }

// Base is the address of the first byte; 0 after Free.
func (r *Region) Base() uintptr { return address(r.bytes) }

// Huge reports whether huge pages were asked for and the system grants them to those who ask. It may still back a part
// with small pages when it has no huge one free.
func (r *Region) Huge() bool { return r.huge }

// Lock keeps the pages of [off, off+n) in memory, faulting them in. It locks all of the range or, with an error, none of
// it; errors.Is(err, ErrLockLimit) when the system's limit is what refused. Pages the range only touches are included.
func (r *Region) Lock(off, n int) error {
	part, err := r.part("lock", off, n)
	if err != nil || n == 0 {
		return err
	}
	if err := r.lock(part); err != nil {
		_ = r.unlock(part) // a refusal part way leaves the first pages locked
		return fmt.Errorf("lock %d MiB of memory: %w", n>>20, err)
	}
	return nil
}

// Unlock undoes Lock for the pages of [off, off+n). Unlocking what is not locked is no error.
func (r *Region) Unlock(off, n int) error {
	part, err := r.part("unlock", off, n)
	if err != nil || n == 0 {
		return err
	}
	if err := r.unlock(part); err != nil {
		return fmt.Errorf("unlock %d MiB of memory: %w", n>>20, err)
	}
	return nil
}

// Release gives the pages of [off, off+n) back to the system; the addresses stay valid and what they held is lost (they
// read as zero or as before). off is a multiple of Size, and so is n unless the range ends where the region does. A
// locked range must be unlocked first.
func (r *Region) Release(off, n int) error {
	part, err := r.part("release", off, n)
	if err != nil || n == 0 {
		return err
	}
	if off%Size() != 0 || (n%Size() != 0 && off+n != len(r.bytes)) {
		return fmt.Errorf("release memory at %d, %d bytes: not whole pages of %d bytes", off, n, Size())
	}
	if err := r.release(part); err != nil {
		return fmt.Errorf("release %d MiB of memory: %w", n>>20, err)
	}
	return nil
}

// Free gives everything back; Bytes taken earlier must not be touched again. Freeing twice is no error.
func (r *Region) Free() error {
	if r.mapping == nil {
		return nil
	}
	if err := r.free(); err != nil {
		return fmt.Errorf("free %d MiB of memory: %w", len(r.mapping)>>20, err)
	}
	r.mapping, r.bytes = nil, nil
	return nil
}

func (r *Region) part(verb string, off, n int) ([]byte, error) {
	if off < 0 || n < 0 || off > len(r.bytes) || n > len(r.bytes)-off {
		return nil, fmt.Errorf("%s memory at %d, %d bytes: outside the region's %d", verb, off, n, len(r.bytes))
	}
	if !r.access {
		return nil, fmt.Errorf("%s memory at %d: the region is reserved address space without pages", verb, off)
	}
	return r.bytes[off : off+n], nil
}

// address is where b starts. reflect states it without unsafe; the memory is not the garbage collector's, so it holds.
func address(b []byte) uintptr {
	if len(b) == 0 {
		return 0
	}
	return reflect.ValueOf(b).Pointer()
}
