package lock

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/bmoe/bmoe/platform/internal/mach"
)

// inPlace follows the kernel (osfmk/vm/vm_map.c, add_wire_counts): a process may lock up to vm.user_wire_limit, or less where
// RLIMIT_MEMLOCK says so, and all of the system together, the kernel's own wired pages counted, up to
// vm.global_user_wire_limit.
func inPlace() (int64, string, error) {
	page := int64(unix.Getpagesize())
	global, err := unix.SysctlUint64("vm.global_user_wire_limit")
	if err != nil {
		return 0, "", fmt.Errorf("vm.global_user_wire_limit: %w", err)
	}
	each, err := unix.SysctlUint64("vm.user_wire_limit")
	if err != nil {
		return 0, "", fmt.Errorf("vm.user_wire_limit: %w", err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		return 0, "", fmt.Errorf("RLIMIT_MEMLOCK: %w", err)
	}
	count, err := mach.Count()
	if err != nil {
		return 0, "", err
	}
	wired := int64(count.Wired) * page
	n, from := left(int64(min(global, math.MaxInt64)), int64(min(each, limit.Cur, math.MaxInt64)), wired, page)
	return n, from, nil
}
