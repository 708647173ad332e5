package pages

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// take reserves n bytes and what it needs to find a multiple of align among them, and commits the n.
func (r *Region) take(n, align int) error {
	page := Size()
	if n > int(^uint(0)>>1)-align-page {
		return windows.ERROR_NOT_ENOUGH_MEMORY
	}
	size := (n+page-1)&^(page-1) + align
	base, err := windows.VirtualAlloc(0, uintptr(size), windows.MEM_RESERVE, windows.PAGE_NOACCESS)
	if err != nil {
		return err
	}
	skip := int(-base & uintptr(align-1))
	if r.access {
		if _, err := windows.VirtualAlloc(base+uintptr(skip), uintptr(n), windows.MEM_COMMIT, windows.PAGE_READWRITE); err != nil {
			return errors.Join(err, windows.VirtualFree(base, 0, windows.MEM_RELEASE))
		}
	}
	// The system gives an address; only unsafe makes it memory for Go. That is sound: the addresses stay valid until
	// free, are outside the Go heap, and the pointer is read out of the variable that holds the address, once.
	r.mapping = unsafe.Slice(*(**byte)(unsafe.Pointer(&base)), size)
	r.bytes = r.mapping[skip : skip+n : skip+n]
	return nil
}

func (r *Region) free() error { return windows.VirtualFree(address(r.mapping), 0, windows.MEM_RELEASE) }

// askHuge has nobody to ask: large pages need a privilege that users do not have, and memory that is committed at once.
func (r *Region) askHuge() bool { return false }

// lock widens the working set first: Windows locks no more than its least size, less a few pages.
func (r *Region) lock(part []byte) error {
	const room = 1 << 20
	var least, most uintptr
	var flags uint32
	windows.GetProcessWorkingSetSizeEx(windows.CurrentProcess(), &least, &most, &flags)
	add := uintptr(len(part) + room)
	err := windows.SetProcessWorkingSetSizeEx(windows.CurrentProcess(), least+add, most+add, flags)
	if err == nil {
		err = windows.VirtualLock(address(part), uintptr(len(part)))
	}
	if errors.Is(err, windows.ERROR_WORKING_SET_QUOTA) || errors.Is(err, windows.ERROR_NO_SYSTEM_RESOURCES) || errors.Is(err, windows.ERROR_PRIVILEGE_NOT_HELD) {
		return fmt.Errorf("%w (the process's working set cannot grow by %d MiB): %w", ErrLockLimit, len(part)>>20, err)
	}
	return err
}

func (r *Region) unlock(part []byte) error {
	err := windows.VirtualUnlock(address(part), uintptr(len(part)))
	if errors.Is(err, windows.ERROR_NOT_LOCKED) {
		return nil
	}
	return err
}

// release takes the pages away and puts fresh ones, not backed yet, in their place.
func (r *Region) release(part []byte) error {
	base, n := address(part), uintptr(len(part))
	if err := windows.VirtualFree(base, n, windows.MEM_DECOMMIT); err != nil {
		return err
	}
	_, err := windows.VirtualAlloc(base, n, windows.MEM_COMMIT, windows.PAGE_READWRITE)
	return err
}
