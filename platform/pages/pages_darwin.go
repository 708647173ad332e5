package pages

import "golang.org/x/sys/unix"

// askHuge has nobody to ask: macOS offers large pages on Intel machines only, and not to memory already mapped.
func (r *Region) askHuge() bool { return false }

// release lets the kernel take the pages when it wants them; until then they keep what they held.
func (r *Region) release(part []byte) error { return unix.Madvise(part, unix.MADV_FREE) }
