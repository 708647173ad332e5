package cpu

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

var getSystemCPUSets = kernel32.NewProc("GetSystemCpuSetInformation")

// readClasses tells cores apart by their EfficiencyClass. Frequencies are not stated with it.
func readClasses() ([]Class, string, error) {
	if err := getSystemCPUSets.Find(); err != nil {
		return nil, "", err
	}
	var size uint32
	process := uintptr(windows.CurrentProcess())
	// unsafe hands the system buffers to fill, which live until the call returns.
	_, _, err := getSystemCPUSets.Call(0, 0, uintptr(unsafe.Pointer(&size)), process, 0)
	if size == 0 {
		return nil, "", fmt.Errorf("GetSystemCpuSetInformation: %w", err)
	}
	info := make([]byte, size)
	ok, _, err := getSystemCPUSets.Call(uintptr(unsafe.Pointer(&info[0])), uintptr(size), uintptr(unsafe.Pointer(&size)), process, 0)
	if ok == 0 {
		return nil, "", fmt.Errorf("GetSystemCpuSetInformation: %w", err)
	}
	classes := grouped(cpuSets(info[:min(int(size), len(info))], affinity()))
	if len(classes) == 0 {
		return nil, "", errors.New("GetSystemCpuSetInformation states none of this process's cores")
	}
	return classes, "EfficiencyClass of GetSystemCpuSetInformation", nil
}
