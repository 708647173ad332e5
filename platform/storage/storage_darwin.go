package storage

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

var errUnsupported = fmt.Errorf("not yet on this system: %w", errors.ErrUnsupported)

// openHandle asks for uncached reads with F_NOCACHE: what the cache holds already is still served from it.
func openHandle(path string, direct bool) (handle, error) {
	h, err := openDescriptor(path, 0)
	if err != nil || !direct {
		return h, err
	}
	if _, err := unix.FcntlInt(uintptr(h), unix.F_NOCACHE, 1); err != nil {
		return h, errors.Join(err, h.close())
	}
	return h, nil
}

// directBlock is what keeps a read off the cache: the kernel copies the ends of any other through it. No interface states it.
func (h handle) directBlock() (block, error) {
	return block{bytes: usualAlign, from: "the system does not state one"}, nil
}

// stored does a read; whether it was one from storage is not told.
func (h handle) stored(read func()) (was, known bool) {
	read()
	return false, false
}

func (h handle) advise(a Advice) error {
	ahead := 1
	if a == Random {
		ahead = 0
	}
	_, err := unix.FcntlInt(uintptr(h), unix.F_RDAHEAD, ahead)
	return err
}

func (h handle) drop(off, n int64, flush bool) error { return errUnsupported }

func (h handle) cached(off, n int64) (int64, error) { return 0, errUnsupported }

func freeSpace(dir string) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	return int64(fs.Bavail) * int64(fs.Bsize), nil
}
