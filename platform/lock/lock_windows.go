package lock

import (
	"fmt"
	"os"

	"golang.org/x/sys/windows"

	"github.com/bmoe/bmoe/platform/internal/job"
	"github.com/bmoe/bmoe/platform/memory"
)

// overhead is the pages of a working set that Windows keeps for itself when it locks (VirtualLock: "the number of pages in
// its minimum working set minus a small overhead").
const overhead = 8

// QUOTA_LIMITS_HARDWS_MAX_ENABLE of SetProcessWorkingSetSizeEx: the largest working set is a hard limit.
const hardMaximum = 0x4

// inPlace is what the working set can grow to, since locking widens it: to what this process may hold, unless its largest
// size is a hard limit, of the process or of its job. What it uses of a hard limit, locked or not, counts as taken.
func inPlace() (int64, string, error) {
	facts, err := memory.Read()
	if err != nil {
		return 0, "", err
	}
	var least, most uintptr
	var flags uint32
	windows.GetProcessWorkingSetSizeEx(windows.CurrentProcess(), &least, &most, &flags)
	if most == 0 {
		return 0, "", fmt.Errorf("GetProcessWorkingSetSizeEx gave no working set")
	}
	limits, err := job.Read()
	if err != nil {
		return 0, "", err
	}
	hard, from := int64(0), ""
	if flags&hardMaximum != 0 {
		hard, from = int64(most), "the largest working set of this process"
	}
	if set := limits.WorkingSet; set > 0 && (hard == 0 || set < hard) {
		hard, from = set, "the largest working set of its job"
	}
	if hard == 0 {
		return facts.Available, "no hard limit on the working set: as much as this process may hold", nil
	}
	use, err := job.Use()
	if err != nil {
		return 0, "", err
	}
	page := int64(os.Getpagesize())
	n := max(0, hard-use.WorkingSet-overhead*page) / page * page
	return min(n, facts.Available), fmt.Sprintf("%s, %d MiB, of which it uses %d MiB", from, hard>>20, use.WorkingSet>>20), nil
}
