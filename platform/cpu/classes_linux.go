package cpu

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
)

func readClasses() ([]Class, string, error) { return classesFrom(os.DirFS("/"), allowed()) }

// classesFrom tells the cores that the CPUs belong to apart by what sysfs states of each: cpu_capacity, which compares cores
// of different design, and the highest frequency. tree is the root of the file system.
func classesFrom(tree fs.FS, cpus []int) ([]Class, string, error) {
	cores := map[string]kind{}
	var capacities, frequencies int
	for _, c := range cpus {
		capacity, err := number(tree, fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpu_capacity", c))
		if err != nil {
			return nil, "", err
		}
		kHz, err := number(tree, fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq/cpuinfo_max_freq", c))
		if err != nil {
			return nil, "", err
		}
		if capacity > 0 {
			capacities++
		}
		if kHz > 0 {
			frequencies++
		}
		cores[core(tree, c)] = kind{capacity, kHz * 1000}
	}
	var from []string
	for _, s := range []struct {
		name string
		have int
	}{{"cpu_capacity", capacities}, {"cpufreq/cpuinfo_max_freq", frequencies}} {
		switch s.have {
		case 0:
		case len(cpus):
			from = append(from, s.name)
		default:
			return nil, "", fmt.Errorf("/sys/devices/system/cpu states %s of only %d of %d CPUs", s.name, s.have, len(cpus))
		}
	}
	if len(from) == 0 {
		return nil, "", errors.New("/sys/devices/system/cpu states neither cpu_capacity nor cpufreq/cpuinfo_max_freq")
	}
	return grouped(cores), strings.Join(from, " and ") + " of /sys/devices/system/cpu", nil
}

// number reads a file of one number that is not negative; 0 where it is not there.
func number(tree fs.FS, name string) (int64, error) {
	b, err := fs.ReadFile(tree, name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/1000 {
		return 0, fmt.Errorf("/%s: %q is no such number", name, strings.TrimSpace(string(b)))
	}
	return n, nil
}
