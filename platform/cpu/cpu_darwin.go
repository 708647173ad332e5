package cpu

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// physical is the machine's cores: macOS binds no process to some of them.
func physical() int {
	n, err := unix.SysctlUint32("hw.physicalcpu")
	if err != nil {
		return runtime.NumCPU()
	}
	return int(n)
}
