//go:build linux || darwin

package storage

import (
	"errors"

	"golang.org/x/sys/unix"
)

// handle is a file descriptor, and -1 once closed.
type handle int

func openDescriptor(path string, flags int) (handle, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|flags, 0)
		if !errors.Is(err, unix.EINTR) {
			return handle(fd), err
		}
	}
}

func (h handle) size() (int64, error) {
	var st unix.Stat_t
	err := unix.Fstat(int(h), &st)
	return st.Size, err
}

func (h handle) pread(p []byte, off int64) (int, error) {
	for {
		n, err := unix.Pread(int(h), p, off)
		if err != unix.EINTR {
			return n, err
		}
	}
}

// view is the bytes of a mapping. Nothing touches them: where the file has shrunk that would end the process.
type view []byte

func (h handle) mapAll(size int64) (view, error) {
	return unix.Mmap(int(h), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
}

func (v view) unmap() error { return unix.Munmap(v) }

func (h handle) close() error { return unix.Close(int(h)) }
