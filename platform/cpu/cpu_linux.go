package cpu

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bmoe/bmoe/platform/internal/cgroup"
)

func physical() int { return physicalFrom(os.DirFS("/"), allowed()) }

// allowed is the CPUs of this process's affinity. A kernel built for more CPUs than the set holds does not answer; the
// count that the Go runtime took at the start serves then.
func allowed() []int {
	var set unix.CPUSet
	var cpus []int
	if unix.SchedGetaffinity(os.Getpid(), &set) == nil {
		for i := range len(set) * strconv.IntSize {
			if set.IsSet(i) {
				cpus = append(cpus, i)
			}
		}
		return cpus
	}
	for i := range runtime.NumCPU() {
		cpus = append(cpus, i)
	}
	return cpus
}

// physicalFrom counts the cores that the CPUs belong to, in the system whose root is tree.
func physicalFrom(tree fs.FS, cpus []int) int {
	cores := map[string]bool{}
	for _, c := range cpus {
		cores[core(tree, c)] = true
	}
	n := len(cores)
	groups, err := cgroup.Of(tree, "cpu")
	if err != nil {
		return n
	}
	for _, g := range groups {
		if q, ok := quota(tree, g); ok {
			n = min(n, q)
		}
	}
	return n
}

// core names the core of a CPU by the list of the CPUs that share it.
func core(tree fs.FS, cpu int) string {
	for _, name := range []string{"core_cpus_list", "thread_siblings_list"} { // the second is the older one
		b, err := fs.ReadFile(tree, fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/%s", cpu, name))
		if list := strings.TrimSpace(string(b)); err == nil && list != "" {
			return list
		}
	}
	return strconv.Itoa(cpu)
}

// quota is how many cores' time a group grants, rounded up.
func quota(tree fs.FS, g cgroup.Group) (int, bool) {
	var fields []string
	if g.V2 {
		fields = words(tree, g, "cpu.max")
	} else {
		fields = append(words(tree, g, "cpu.cfs_quota_us"), words(tree, g, "cpu.cfs_period_us")...)
	}
	if len(fields) != 2 {
		return 0, false
	}
	quota, err := strconv.ParseInt(fields[0], 10, 64)
	period, err2 := strconv.ParseInt(fields[1], 10, 64)
	if err != nil || err2 != nil || quota <= 0 || period <= 0 { // "max" and -1 are no limit
		return 0, false
	}
	return int(min((quota-1)/period+1, 1<<20)), true
}

func words(tree fs.FS, g cgroup.Group, name string) []string {
	b, err := fs.ReadFile(tree, path.Join(g.Dir, name))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b))
}
