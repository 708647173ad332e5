package cpu

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// printEnv makes the test binary print how many cores it may use.
const printEnv = "BMOE_TEST_CPU_PRINT"

func TestMain(m *testing.M) {
	if os.Getenv(printEnv) != "" {
		fmt.Print(Physical())
		return
	}
	os.Exit(m.Run())
}

// machine is a tree with CPUs whose siblings are listed, and the groups' files.
func machine(siblings []string, files map[string]string) fstest.MapFS {
	tree := fstest.MapFS{}
	for i, s := range siblings {
		tree[fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", i)] = &fstest.MapFile{Data: []byte(s + "\n")}
	}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text + "\n")}
	}
	return tree
}

func TestMachines(t *testing.T) {
	t.Parallel()
	smt := []string{"0,4", "1,5", "2,6", "3,7", "0,4", "1,5", "2,6", "3,7"}
	hybrid := []string{"0-1", "0-1", "2-3", "2-3", "4", "5", "6", "7"}
	v2 := func(outer, inner string) map[string]string {
		return map[string]string{
			"proc/self/cgroup":                "0::/a/b",
			"proc/self/mountinfo":             "31 22 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
			"sys/fs/cgroup/a/cpu.max":         outer,
			"sys/fs/cgroup/a/b/cpu.max":       inner,
			"sys/fs/cgroup/a/b/cgroup.events": "populated 1",
		}
	}
	v1 := func(quota, period string) map[string]string {
		return map[string]string{
			"proc/self/cgroup":                              "4:cpu,cpuacct:/a",
			"proc/self/mountinfo":                           "31 22 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":    "-1",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us":   "100000",
			"sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us":  quota,
			"sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": period,
		}
	}
	all := []int{0, 1, 2, 3, 4, 5, 6, 7}
	for _, c := range []struct {
		name     string
		siblings []string
		cpus     []int
		files    map[string]string
		want     int
	}{
		{"two threads a core", smt, all, nil, 4},
		{"one thread of each of two cores", smt, []int{0, 1}, nil, 2},
		{"both threads of one core", smt, []int{1, 5}, nil, 1},
		{"cores with and without a second thread", hybrid, all, nil, 6},
		{"no topology", nil, []int{0, 1, 2}, nil, 3},
		{"version 2 without a limit", smt, all, v2("max 100000", "max 100000"), 4},
		{"version 2, two cores", smt, all, v2("max 100000", "200000 100000"), 2},
		{"version 2, the parent's limit", smt, all, v2("100000 100000", "300000 100000"), 1},
		{"version 2, a part of a core", smt, all, v2("max 100000", "210000 100000"), 3},
		{"version 2, less than a core", smt, all, v2("max 100000", "1000 100000"), 1},
		{"version 2, more than there is", smt, all, v2("max 100000", "1600000 100000"), 4},
		{"version 1 without a limit", smt, all, v1("-1", "100000"), 4},
		{"version 1, a core and a half", smt, all, v1("150000", "100000"), 2},
		{"nonsense is no limit", smt, all, v1("many", "0"), 4},
		{"absurd numbers", smt, all, v2("9223372036854775807 1", "9223372036854775807 9223372036854775807"), 1},
	} {
		assert.Equal(t, c.want, physicalFrom(machine(c.siblings, c.files), c.cpus), c.name)
	}
	// newer kernels name the same list so
	tree := machine([]string{"0", "1"}, map[string]string{
		"sys/devices/system/cpu/cpu0/topology/core_cpus_list": "0-1",
		"sys/devices/system/cpu/cpu1/topology/core_cpus_list": "0-1",
	})
	assert.Equal(t, 1, physicalFrom(tree, []int{0, 1}))
}

// A process that may run on one CPU has one core.
func TestAffinity(t *testing.T) {
	t.Parallel()
	type answer struct {
		out string
		err error
	}
	answers := make(chan answer)
	go func() {
		// The child inherits the affinity of the thread that starts it; the thread ends with the goroutine.
		runtime.LockOSThread()
		var one unix.CPUSet
		one.Set(allowed()[0])
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			answers <- answer{err: err}
			return
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), printEnv+"=1")
		out, err := cmd.Output()
		answers <- answer{string(out), err}
	}()
	a := <-answers
	require.NoError(t, a.err)
	assert.Equal(t, "1", strings.TrimSpace(a.out))
}

func TestClassesFrom(t *testing.T) {
	t.Parallel()
	const dir = "sys/devices/system/cpu/cpu"
	sets := func(name string, values ...string) map[string]string {
		files := map[string]string{}
		for i, v := range values {
			files[fmt.Sprint(dir, i, "/", name)] = v
		}
		return files
	}
	smt := []string{"0-1", "0-1", "2", "3"}
	for _, c := range []struct {
		name  string
		cpus  []int
		files map[string]string
		want  []Class
		says  string
	}{
		{"two threads of the fast one", []int{0, 1, 2, 3}, sets("cpufreq/cpuinfo_max_freq", "4800000", "4800000", "3600000", "3600000"),
			[]Class{{1, 4800000000}, {2, 3600000000}}, "cpuinfo_max_freq"},
		{"only those it may use", []int{2, 3}, sets("cpufreq/cpuinfo_max_freq", "4800000", "4800000", "3600000", "3600000"),
			[]Class{{2, 3600000000}}, "cpuinfo_max_freq"},
		{"capacity alone", []int{0, 2, 3}, sets("cpu_capacity", "1024", "1024", "400", "400"), []Class{{1, 0}, {2, 0}}, "cpu_capacity"},
		{"nothing", []int{0, 1}, nil, nil, "neither cpu_capacity nor cpufreq/cpuinfo_max_freq"},
		{"some", []int{0, 2}, sets("cpu_capacity", "1024"), nil, "cpu_capacity of only 1 of 2"},
		{"nonsense", []int{0}, sets("cpu_capacity", "all"), nil, "cpu0/cpu_capacity"},
		{"negative", []int{0}, sets("cpufreq/cpuinfo_max_freq", "-5"), nil, "cpuinfo_max_freq"},
	} {
		got, from, err := classesFrom(machine(smt, c.files), c.cpus)
		if c.want == nil {
			require.ErrorContains(t, err, c.says, c.name)
			continue
		}
		require.NoError(t, err, c.name)
		assert.Equal(t, c.want, got, c.name)
		assert.Contains(t, from, c.says, c.name)
	}
}
