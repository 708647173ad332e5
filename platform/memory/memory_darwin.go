package memory

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// read adds up what the kernel can give without compressing or writing anything: free pages, pages of files and
// purgeable ones. It is a floor: macOS compresses idle memory to make room.
func read() (Facts, error) {
	total, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return Facts{}, fmt.Errorf("hw.memsize: %w", err)
	}
	var pages int64
	for _, name := range []string{"vm.page_free_count", "vm.page_pageable_external_count", "vm.page_purgeable_count"} {
		n, err := unix.SysctlUint32(name)
		if err != nil {
			return Facts{}, fmt.Errorf("%s: %w", name, err)
		}
		pages += int64(n)
	}
	f := Facts{
		Total:     int64(total),
		Available: min(pages*int64(os.Getpagesize()), int64(total)),
		Why:       "what the system has free, or holds of files and can drop",
	}
	if left, limited := share(); limited && left < f.Available {
		f.Available, f.Why = left, "what this app may take before it is ended (os_proc_available_memory)"
	}
	bounds, err := caps()
	if err != nil {
		return Facts{}, err
	}
	f.within(bounds)
	return f, nil
}
