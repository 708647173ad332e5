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

func (h handle) close() error { return unix.Close(int(h)) }
