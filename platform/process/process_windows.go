package process

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

var getProcessMemoryInfo = windows.NewLazySystemDLL("kernel32.dll").NewProc("K32GetProcessMemoryInfo")

// memoryCounters is PROCESS_MEMORY_COUNTERS.
type memoryCounters struct {
	size, pageFaults                 uint32
	peakWorkingSet, workingSet       uintptr
	peakPagedPool, pagedPool         uintptr
	peakNonPagedPool, nonPagedPool   uintptr
	pagefileUsage, peakPagefileUsage uintptr
}

// read has the working set. Windows counts page faults and reads whether or not they went to storage, and states no
// part of the working set as anonymous or locked.
func read() (Usage, error) {
	c := memoryCounters{}
	c.size = uint32(unsafe.Sizeof(c))
	// unsafe hands the system a structure to fill, which lives until the call returns.
	if ok, _, err := getProcessMemoryInfo.Call(uintptr(windows.CurrentProcess()), uintptr(unsafe.Pointer(&c)), uintptr(c.size)); ok == 0 {
		return Usage{}, fmt.Errorf("GetProcessMemoryInfo: %w", err)
	}
	u := unknown
	u.Resident, u.PeakResident = int64(c.workingSet), int64(c.peakWorkingSet)
	return u, nil
}
