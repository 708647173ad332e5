package cpu

import (
	"encoding/binary"
	"errors"
	"runtime"
	"unsafe"

	"golang.org/x/sys/windows"
)

var (
	kernel32               = windows.NewLazySystemDLL("kernel32.dll")
	getLogicalProcessors   = kernel32.NewProc("GetLogicalProcessorInformationEx")
	getProcessAffinityMask = kernel32.NewProc("GetProcessAffinityMask")
)

const relationProcessorCore = 0

func physical() int {
	info, err := processorInformation()
	if err != nil {
		return runtime.NumCPU()
	}
	n := cores(info, affinity())
	if n == 0 {
		return runtime.NumCPU()
	}
	return n
}

// processorInformation is the system's records of its cores, one after the other. unsafe hands it buffers to fill.
func processorInformation() ([]byte, error) {
	var size uint32
	_, _, err := getLogicalProcessors.Call(relationProcessorCore, 0, uintptr(unsafe.Pointer(&size)))
	if !errors.Is(err, windows.ERROR_INSUFFICIENT_BUFFER) {
		return nil, err
	}
	info := make([]byte, size)
	ok, _, err := getLogicalProcessors.Call(relationProcessorCore, uintptr(unsafe.Pointer(&info[0])), uintptr(unsafe.Pointer(&size)))
	if ok == 0 {
		return nil, err
	}
	return info[:size], nil
}

// affinity is the CPUs that this process may use, a bit each; 0 where it may use several groups of 64, or all.
func affinity() uint64 {
	var process, system uintptr
	ok, _, _ := getProcessAffinityMask.Call(uintptr(windows.CurrentProcess()), uintptr(unsafe.Pointer(&process)), uintptr(unsafe.Pointer(&system)))
	if ok == 0 || process == system {
		return 0
	}
	return uint64(process)
}

// cores counts the cores of SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX records that have a CPU of the mask, or all with a
// mask of 0. A record is its relationship and size (32 bits each), 22 bytes of flags, a count of groups (16) and for each
// group a mask of CPUs (64) and its number (16, padded to 64).
func cores(info []byte, mask uint64) int {
	n := 0
	for len(info) >= 48 {
		size := binary.LittleEndian.Uint32(info[4:])
		if size < 48 || int64(size) > int64(len(info)) {
			break
		}
		of := binary.LittleEndian.Uint64(info[32:])
		group := binary.LittleEndian.Uint16(info[40:])
		if mask == 0 || (group == 0 && of&mask != 0) {
			n++
		}
		info = info[size:]
	}
	return n
}
