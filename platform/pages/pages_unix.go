//go:build linux || darwin

package pages

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// take maps n bytes at a multiple of align. The kernel aligns to pages only, so the rest is mapped too and never touched.
func (r *Region) take(n, align int) error {
	page := Size()
	if n > int(^uint(0)>>1)-align-page {
		return unix.ENOMEM
	}
	prot, flags := unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE
	if r.access {
		prot, flags = unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON
	}
	mapping, err := unix.Mmap(-1, 0, (n+page-1)&^(page-1)+align-page, prot, flags)
	if err != nil {
		return err
	}
	skip := int(-address(mapping) & uintptr(align-1))
	r.mapping, r.bytes = mapping, mapping[skip:skip+n:skip+n]
	return nil
}

func (r *Region) free() error { return unix.Munmap(r.mapping) }

// lock takes a refusal to lock pages that are there as the limit's, which mlock(2) states in several ways.
func (r *Region) lock(part []byte) error {
	err := unix.Mlock(part)
	if errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EAGAIN) {
		return fmt.Errorf("%w (`ulimit -l` shows the limit): %w", ErrLockLimit, err)
	}
	return err
}

func (r *Region) unlock(part []byte) error { return unix.Munlock(part) }
