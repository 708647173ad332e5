package pages

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// askHuge asks for transparent huge pages and reports whether the kernel gives them to those who ask.
func (r *Region) askHuge() bool {
	if unix.Madvise(r.bytes, unix.MADV_HUGEPAGE) != nil {
		return false // a kernel built without them
	}
	mode, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	return err == nil && !bytes.Contains(mode, []byte("[never]"))
}

func (r *Region) release(part []byte) error {
	err := unix.Madvise(part, unix.MADV_DONTNEED)
	if errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("the range is locked, unlock it first: %w", err)
	}
	return err
}
