package cpu

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// readClasses reads the performance levels, of which 0 is the fastest. Their frequencies are not published. A machine
// without levels has cores of one kind.
func readClasses() ([]Class, string, error) {
	levels, err := unix.SysctlUint32("hw.nperflevels")
	if err != nil || levels == 0 {
		n, err := unix.SysctlUint32("hw.physicalcpu")
		if err != nil {
			return nil, "", fmt.Errorf("hw.physicalcpu: %w", err)
		}
		frequency, err := unix.SysctlUint64("hw.cpufrequency_max")
		if err != nil {
			frequency = 0
		}
		return []Class{{int(n), int64(frequency)}}, "hw.physicalcpu, without performance levels", nil
	}
	var classes []Class
	for i := range levels {
		name := fmt.Sprintf("hw.perflevel%d.physicalcpu", i)
		n, err := unix.SysctlUint32(name)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", name, err)
		}
		if n > 0 {
			classes = append(classes, Class{Count: int(n)})
		}
	}
	return classes, "hw.perflevelN.physicalcpu", nil
}
