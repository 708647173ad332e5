package memory

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/bmoe/bmoe/platform/internal/job"
)

// ends is answered by the job, if there is one: past its limits Windows refuses memory, and ends nobody.
func ends() (bool, string, error) {
	limits, err := job.Read()
	if err != nil {
		return false, "", err
	}
	if limits.Process > 0 || limits.Job > 0 {
		return false, "past the limit of its job this process is refused memory, and not ended", nil
	}
	return false, "no job limits the memory of this process", nil
}

// compresses looks for the process in which Windows keeps what it compressed; that setting itself is for administrators to
// read. Where it is not shown nothing follows.
func compresses() (bool, string, error) {
	all, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return false, "", fmt.Errorf("list the processes: %w", err)
	}
	defer func() { _ = windows.CloseHandle(all) }()
	var p windows.ProcessEntry32
	p.Size = uint32(unsafe.Sizeof(p))
	for err = windows.Process32First(all, &p); err == nil; err = windows.Process32Next(all, &p) {
		if windows.UTF16ToString(p.ExeFile[:]) == "Memory Compression" {
			return true, "the process Memory Compression runs", nil
		}
	}
	return false, "", errors.New("the system tells it to administrators alone, and shows no process Memory Compression")
}

var getPerformanceInfo = windows.NewLazySystemDLL("kernel32.dll").NewProc("K32GetPerformanceInfo")

// performance is PERFORMANCE_INFORMATION of psapi.h, in pages.
type performance struct {
	size                                      uint32
	commit, commitLimit, commitPeak           uintptr
	physical, available, cache                uintptr
	kernel, kernelPaged, kernelNonPaged, page uintptr
	handles, processes, threads               uint32
}

// swaps says yes where the system can commit more than it has memory: the rest is in page files.
func swaps() (bool, string, error) {
	var p performance
	p.size = uint32(unsafe.Sizeof(p))
	if ok, _, err := getPerformanceInfo.Call(uintptr(unsafe.Pointer(&p)), uintptr(p.size)); ok == 0 {
		return false, "", fmt.Errorf("GetPerformanceInfo: %w", err)
	}
	if n := (int64(p.commitLimit) - int64(p.physical)) * int64(p.page); n >= 1<<20 {
		return true, fmt.Sprintf("page files of %d MiB (GetPerformanceInfo)", n>>20), nil
	}
	return false, "no page file (GetPerformanceInfo)", nil
}

func compressorRatio() (float64, string, error) {
	return 0, "", errors.New("Windows does not publish what its compressor holds")
}

func idleAnonymous() (int64, string, error) {
	return 0, "", errors.New("Windows does not publish what backs a page that nobody touched lately")
}
