package memory

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/bmoe/bmoe/platform/internal/job"
)

var globalMemoryStatusEx = windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")

// memoryStatus is MEMORYSTATUSEX.
type memoryStatus struct {
	size, load                       uint32
	totalPhysical, availablePhysical uint64
	totalPageFile, availablePageFile uint64 // what may be committed, in RAM and page file together
	totalVirtual, availableVirtual   uint64
	availableExtendedVirtual         uint64
}

// read takes the lesser of the physical memory that is free and of what may still be committed: Windows commits memory
// when it is allocated, whether or not it is touched.
func read() (Facts, error) {
	s := memoryStatus{}
	s.size = uint32(unsafe.Sizeof(s))
	// unsafe hands the system a structure to fill, which lives until the call returns.
	if ok, _, err := globalMemoryStatusEx.Call(uintptr(unsafe.Pointer(&s))); ok == 0 {
		return Facts{}, fmt.Errorf("GlobalMemoryStatusEx: %w", err)
	}
	f := Facts{Total: int64(s.totalPhysical), Available: int64(s.availablePhysical), Why: "what the system has available"}
	if commit := int64(s.availablePageFile); commit < f.Available {
		f.Available, f.Why = commit, "what the system can still commit"
	}
	bounds, err := caps()
	if err != nil {
		return Facts{}, err
	}
	f.within(bounds)
	return f, nil
}

// caps are the limits of the job that this process is in.
func caps() ([]bound, error) {
	limits, err := job.Read()
	if err != nil {
		return nil, err
	}
	var found []bound
	if limits.Process > 0 {
		use, err := job.Use()
		if err != nil {
			return nil, err
		}
		found = append(found, bound{"the limit that its job sets each process", limits.Process, use.Committed})
	}
	if limits.Job > 0 {
		found = append(found, bound{"the limit of its job", limits.Job, limits.JobUsed})
	}
	return found, nil
}
