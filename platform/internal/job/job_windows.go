// Package job reads the limits of the Windows job object that this process is in, and what it uses of them.
//
// It must not know what they bound for whom.
package job

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Limits are what a job bounds; 0: it does not. Bytes.
type Limits struct {
	Process    int64 // memory that each process of the job may commit
	Job        int64 // memory that all of them may commit together
	JobUsed    int64 // what of that is taken: the most it ever was, where the system does not say what it is now
	WorkingSet int64 // the largest working set of each process
}

// JOB_OBJECT_LIMIT_JOB_MEMORY and its like (winnt.h) say which limits are in force.
const (
	limitWorkingSet    = 0x1
	limitProcessMemory = 0x100
	limitJobMemory     = 0x200
)

// JobObjectMemoryUsageInformation, of Windows 10 on: JOBOBJECT_MEMORY_USAGE_INFORMATION is what the job's processes have
// committed, and the most they had.
const memoryUsageInformation = 28

var isProcessInJob = windows.NewLazySystemDLL("kernel32.dll").NewProc("IsProcessInJob")

// Read asks for the job of this process. One that is in none has no limits.
func Read() (Limits, error) {
	var in int32
	// unsafe hands the system structures to fill, which live until the call returns.
	if ok, _, err := isProcessInJob.Call(uintptr(windows.CurrentProcess()), 0, uintptr(unsafe.Pointer(&in))); ok == 0 {
		return Limits{}, fmt.Errorf("IsProcessInJob: %w", err)
	}
	if in == 0 {
		return Limits{}, nil
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	if err := query(windows.JobObjectExtendedLimitInformation, unsafe.Pointer(&info), unsafe.Sizeof(info)); err != nil {
		return Limits{}, fmt.Errorf("the limits of this process's job: %w", err)
	}
	var l Limits
	flags := info.BasicLimitInformation.LimitFlags
	if flags&limitProcessMemory != 0 {
		l.Process = int64(info.ProcessMemoryLimit)
	}
	if flags&limitWorkingSet != 0 {
		l.WorkingSet = int64(info.BasicLimitInformation.MaximumWorkingSetSize)
	}
	if flags&limitJobMemory != 0 {
		l.Job, l.JobUsed = int64(info.JobMemoryLimit), int64(info.PeakJobMemoryUsed)
		var usage struct{ memory, peak uint64 }
		if query(memoryUsageInformation, unsafe.Pointer(&usage), unsafe.Sizeof(usage)) == nil {
			l.JobUsed = int64(usage.memory)
		}
	}
	return l, nil
}

func query(class int32, into unsafe.Pointer, size uintptr) error {
	return windows.QueryInformationJobObject(0, class, uintptr(into), uint32(size), nil)
}

// Usage is what this process takes, in bytes.
type Usage struct {
	Committed  int64
	WorkingSet int64
}

var getProcessMemoryInfo = windows.NewLazySystemDLL("kernel32.dll").NewProc("K32GetProcessMemoryInfo")

// counters is PROCESS_MEMORY_COUNTERS of psapi.h.
type counters struct {
	size, faults                uint32
	peakWorkingSet, workingSet  uintptr
	peakPaged, paged            uintptr
	peakNonPaged, nonPaged      uintptr
	pagefileUsage, peakPagefile uintptr
}

// Use reads what this process takes now.
func Use() (Usage, error) {
	var c counters
	c.size = uint32(unsafe.Sizeof(c))
	ok, _, err := getProcessMemoryInfo.Call(uintptr(windows.CurrentProcess()), uintptr(unsafe.Pointer(&c)), uintptr(c.size))
	if ok == 0 {
		return Usage{}, errors.Join(errors.New("GetProcessMemoryInfo"), err)
	}
	return Usage{Committed: int64(c.pagefileUsage), WorkingSet: int64(c.workingSet)}, nil
}
