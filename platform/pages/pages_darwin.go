package pages

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// askHuge has nobody to ask: macOS offers large pages on Intel machines only, and not to memory already mapped.
func (r *Region) askHuge() bool { return false }

// release lets the kernel take the pages when it wants them; until then they keep what they held.
func (r *Region) release(part []byte) error { return unix.Madvise(part, unix.MADV_FREE) }

// LockLimit is how many bytes this process may lock. The system does not say how many it holds locked now.
func LockLimit() (int64, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		return 0, fmt.Errorf("read how much memory may be locked: %w", err)
	}
	wire, err := unix.SysctlUint64("vm.user_wire_limit")
	if err != nil {
		return 0, fmt.Errorf("read how much memory may be locked: %w", err)
	}
	return int64(min(limit.Cur, wire, uint64(Unlimited))), nil
}
