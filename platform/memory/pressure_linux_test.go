package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const (
	heading  = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
	zramSwap = "/dev/zram0                              partition\t4194300\t\t1024\t\t100\n"
	diskSwap = "/swap\\040file                           file\t\t2097148\t\t0\t\t-2\n"
	zswap    = "sys/module/zswap/parameters/enabled"
	app2     = "sys/fs/cgroup/user.slice/app.scope/"
	job1     = "sys/fs/cgroup/memory/user/job/"
)

// with is a tree of testdata with files put in its place; an empty text takes the file away.
func with(t *testing.T, tree string, files map[string]string) fstest.MapFS {
	t.Helper()
	m := clone(t, "testdata/"+tree)
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
		if text == "" {
			delete(m, name)
		}
	}
	return m
}

func TestPressure(t *testing.T) {
	t.Parallel()
	type files = map[string]string
	for _, c := range []struct {
		name, tree              string
		files                   files
		ends, compresses, swaps bool
		says                    [3]string // of the three
	}{
		{"no group, no swap", "none", files{"proc/swaps": heading}, false, false, false,
			[3]string{"no control group", "no swap is active", "no swap is active"}},
		{"no swap in the kernel", "none", files{"proc/meminfo": "SwapTotal: 0 kB\n"}, false, false, false,
			[3]string{"no control group", "no swap is active", "no swap is active"}},
		{"zram", "none", files{"proc/swaps": heading + zramSwap}, false, true, false,
			[3]string{"no control group", "/dev/zram0", "every swap is compressed"}},
		{"a disk", "none", files{"proc/swaps": heading + diskSwap}, false, false, true,
			[3]string{"no control group", "has no zswap", "/swap"}},
		{"a disk, zswap off", "none", files{"proc/swaps": heading + diskSwap, zswap: "N\n"}, false, false, true,
			[3]string{"no control group", "zswap is off", "/swap"}},
		{"a disk, zswap on", "none", files{"proc/swaps": heading + diskSwap, zswap: "Y\n"}, false, true, true,
			[3]string{"no control group", "zswap is on", "/swap"}},
		{"zswap on and no swap behind it", "none", files{"proc/swaps": heading, zswap: "Y\n"}, false, false, false,
			[3]string{"no control group", "no swap is active", "no swap"}},
		{"zram behind a disk", "none", files{"proc/swaps": heading + "/dev/zram0 partition 5 0 -3\n" + diskSwap}, false, false, true,
			[3]string{"no control group", "first swap is /swap", "/swap"}},
		{"version 1, no swap", "v1", files{"proc/swaps": heading}, true, false, false,
			[3]string{job1 + "memory.limit_in_bytes of 3072 MiB, and no swap is active", "no swap", "no swap"}},
		{"version 1, swap for all", "v1", files{"proc/swaps": heading + diskSwap}, false, false, true,
			[3]string{"met by swapping first", "no zswap", "/swap"}},
		{"version 1, the group may not swap", "v1", files{"proc/swaps": heading + diskSwap, job1 + "memory.memsw.limit_in_bytes": fmt.Sprint(3072 * mib)}, true, false, false,
			[3]string{"memory.memsw.limit_in_bytes leaves nothing", "memsw", "memsw"}},
		{"version 1, the group swaps a little", "v1", files{"proc/swaps": heading + diskSwap, job1 + "memory.memsw.limit_in_bytes": fmt.Sprint(4072 * mib)}, false, false, true,
			[3]string{"met by swapping first", "no zswap", "/swap"}},
		{"version 1, swappiness 0", "v1", files{"proc/swaps": heading + zramSwap, job1 + "memory.swappiness": "0\n"}, true, false, false,
			[3]string{"memory.swappiness is 0", "swappiness", "swappiness"}},
		{"version 1, stopped instead", "v1", files{"proc/swaps": heading, job1 + "memory.oom_control": "oom_kill_disable 1\nunder_oom 0\n"}, true, false, false,
			[3]string{"stops the process there", "no swap", "no swap"}},
		{"version 1, no limit", "v1-unlimited", files{"proc/swaps": heading}, false, false, false,
			[3]string{"no control group of this process limits", "no swap", "no swap"}},
		{"version 2, no swap", "v2", files{"proc/swaps": heading}, true, false, false,
			[3]string{app2 + "memory.max of 6000 MiB", "no swap", "no swap"}},
		{"version 2, swap forbidden", "v2", files{"proc/swaps": heading + zramSwap, app2 + "memory.swap.max": "0\n"}, true, false, false,
			[3]string{"memory.swap.max is 0", "memory.swap.max is 0", "memory.swap.max is 0"}},
		{"version 2, swap limited", "v2", files{"proc/swaps": heading + diskSwap, app2 + "memory.swap.max": fmt.Sprint(64 * mib)}, false, false, true,
			[3]string{"met by swapping first", "no zswap", "no more than 64 MiB"}},
		{"version 2, zswap forbidden", "v2", files{"proc/swaps": heading + diskSwap, zswap: "Y\n", app2 + "memory.zswap.max": "0\n"}, false, false, true,
			[3]string{"met by swapping first", "memory.zswap.max is 0", "/swap"}},
	} {
		tree := with(t, c.tree, c.files)
		for i, q := range []struct {
			ask  func(fs.FS) (bool, string, error)
			want bool
		}{{endsIn, c.ends}, {compressesIn, c.compresses}, {swapsIn, c.swaps}} {
			got, from, err := q.ask(tree)
			require.NoError(t, err, c.name)
			assert.Equal(t, q.want, got, "%s, question %d: %s", c.name, i, from)
			assert.Contains(t, from, c.says[i], c.name)
		}
	}
}

// A question whose files are missing or hidden has no answer, and names the file.
func TestPressureThatCannotBeRead(t *testing.T) {
	t.Parallel()
	type files = map[string]string
	const limited = "MemTotal: 5 kB\nSwapTotal: 9 kB\n"
	for _, c := range []struct {
		name string
		tree string
		set  files
		ask  func(fs.FS) (bool, string, error)
		says []string
	}{
		{"neither file says", "none", nil, swapsIn, []string{"proc/swaps", "SwapTotal"}},
		{"swap of some kind", "none", files{"proc/meminfo": limited}, compressesIn, []string{"proc/swaps", "SwapTotal"}},
		{"a group, and not whether it swaps", "v2", nil, endsIn, []string{"proc/swaps", "SwapTotal"}},
		{"nonsense", "none", files{"proc/swaps": heading + "x\n"}, swapsIn, []string{"/proc/swaps"}},
		{"a priority that is none", "none", files{"proc/swaps": heading + "/a b c d e\n"}, swapsIn, []string{"/proc/swaps", "priority"}},
		{"zswap says neither", "none", files{"proc/swaps": heading + diskSwap, zswap: "perhaps"}, compressesIn, []string{zswap, "perhaps"}},
		{"a limit that is none", "v2", files{"proc/swaps": heading, app2 + "memory.max": "much"}, endsIn, []string{app2 + "memory.max"}},
		{"a swap limit that is none", "v2", files{"proc/swaps": heading + diskSwap, app2 + "memory.swap.max": "much"}, endsIn, []string{"memory.swap.max"}},
	} {
		yes, _, err := c.ask(with(t, c.tree, c.set))
		require.Error(t, err, c.name)
		assert.False(t, yes, c.name)
		for _, word := range c.says {
			assert.ErrorContains(t, err, word, c.name)
		}
	}
	// As on Android: that a group limits this process is not shown, so it may.
	_, _, err := endsIn(secretive{with(t, "v2", files{"proc/swaps": heading})})
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorContains(t, err, "memory.max")
}

func TestCompressorRatio(t *testing.T) {
	t.Parallel()
	type files = map[string]string
	const stat = "sys/block/zram0/mm_stat"
	for _, c := range []struct {
		name  string
		files files
		want  float64
		says  string
	}{
		{"zram", files{"proc/swaps": heading + zramSwap, stat: " 3000 1000 1200 0 1300 0 0 0 0\n"}, 3, "/" + stat},
		{"two of them", files{"proc/swaps": heading + zramSwap + "/dev/zram1 partition 5 0 99\n", stat: "3000 1000", "sys/block/zram1/mm_stat": "1000 1000"}, 2, "zram1"},
		{"zswap", files{"proc/swaps": heading + diskSwap, zswap: "Y", "proc/meminfo": "Zswap: 100 kB\nZswapped: 250 kB\n"}, 2.5, "Zswapped"},
		{"nothing in it yet", files{"proc/swaps": heading + zramSwap, stat: "0 0 0"}, 0, "holds nothing yet"},
		{"no swap", files{"proc/swaps": heading}, 0, "nothing is compressed here"},
		{"hidden", files{"proc/swaps": heading + zramSwap}, 0, stat},
		{"cut short", files{"proc/swaps": heading + zramSwap, stat: "3000"}, 0, "states no compr_data_size"},
		{"nonsense", files{"proc/swaps": heading + zramSwap, stat: "much more"}, 0, "orig_data_size"},
		{"an older kernel's zswap", files{"proc/swaps": heading + diskSwap, zswap: "Y"}, 0, "states no Zswapped"},
	} {
		got, from, err := ratioIn(with(t, "none", c.files))
		if c.want == 0 {
			require.ErrorContains(t, err, c.says, c.name)
			continue
		}
		require.NoError(t, err, c.name)
		assert.InDelta(t, c.want, got, 1e-9, c.name)
		assert.Contains(t, from, c.says, c.name)
	}
}

func TestIdleAnonymous(t *testing.T) {
	t.Parallel()
	type files = map[string]string
	const info = "MemTotal: 16384000 kB\nInactive(anon): 4096 kB\n"
	group := func(idle string) files {
		return files{"proc/meminfo": info, app2 + "memory.stat": "inactive_file 0\nactive_file 0\n" + idle,
			"sys/fs/cgroup/user.slice/memory.max": "max\n", "sys/fs/cgroup/user.slice/memory.high": "max\n"}
	}
	for _, c := range []struct {
		name, tree string
		files      files
		want       int64
		says       string
	}{
		{"the system's", "none", files{"proc/meminfo": info}, 4 << 20, "/proc/meminfo"},
		{"its group's", "v2", group("inactive_anon 1048576\n"), 1 << 20, app2 + "memory.stat"},
		{"a group that has more", "v2", group("inactive_anon 1048576000\n"), 4 << 20, "/proc/meminfo"},
		{"missing", "none", nil, -1, "/proc/meminfo states no Inactive(anon)"},
		{"missing of its group", "v2", group(""), -1, "states no inactive_anon"},
		{"nonsense", "none", files{"proc/meminfo": "Inactive(anon): some kB\n"}, -1, "Inactive(anon)"},
	} {
		got, from, err := idleIn(with(t, c.tree, c.files))
		if c.want < 0 {
			require.ErrorContains(t, err, c.says, c.name)
			continue
		}
		require.NoError(t, err, c.name)
		assert.Equal(t, c.want, got, c.name)
		assert.Contains(t, from, c.says, c.name)
	}
}

// The limits a process was started with bound it as a group does, net of what it has taken.
func TestResourceLimits(t *testing.T) {
	t.Parallel()
	soft := func(as, data uint64) func(int) (uint64, error) {
		return func(id int) (uint64, error) {
			return map[int]uint64{unix.RLIMIT_AS: as, unix.RLIMIT_DATA: data}[id], nil
		}
	}
	const status = "VmSize:\t  524288 kB\nVmData:\t  262144 kB\n"
	for _, c := range []struct {
		name     string
		as, data uint64
		limit    int64
		want     int64
		says     string
	}{
		{"none", math.MaxUint64, math.MaxUint64, 0, 8192000 << 10, "the system"},
		{"address space", 1 << 30, math.MaxUint64, 1 << 30, 512 * mib, "ulimit -v"},
		{"data", 4 << 30, 1 << 30, 1 << 30, 768 * mib, "ulimit -d"},
		{"taken already", 1 << 20, math.MaxUint64, 1 << 20, 0, "of which 512 MiB are taken"},
	} {
		f, err := readFrom(with(t, "none", map[string]string{"proc/self/status": status}), soft(c.as, c.data))
		require.NoError(t, err, c.name)
		assert.Equal(t, c.want, f.Available, c.name)
		assert.Equal(t, c.limit, f.Limit, c.name)
		assert.Contains(t, f.Why, c.says, c.name)
	}
	for says, status := range map[string]string{"states no VmSize": "VmData: 5 kB\n", "VmSize is": "VmSize: all kB\n"} {
		_, err := readFrom(with(t, "none", map[string]string{"proc/self/status": status}), soft(1<<30, math.MaxUint64))
		require.ErrorContains(t, err, says)
	}
	_, err := readFrom(with(t, "none", nil), func(int) (uint64, error) { return 0, errors.New("no such limit") })
	require.ErrorContains(t, err, "no such limit")
}

func TestMissingLines(t *testing.T) {
	t.Parallel()
	for says, files := range map[string]map[string]string{
		"states no MemTotal":      {"proc/meminfo": "MemAvailable: 5 kB\n"},
		"states no MemAvailable":  {"proc/meminfo": "MemTotal: 5 kB\n"},
		"states no inactive_file": {app2 + "memory.stat": "active_file 1\n"},
		"states no active_file":   {app2 + "memory.stat": "inactive_file 1\n"},
	} {
		_, err := readFrom(with(t, "v2", files), unlimited)
		require.ErrorContains(t, err, says)
	}
}

func FuzzSwaps(f *testing.F) {
	f.Add(heading + zramSwap + diskSwap)
	f.Add(heading + "/a (deleted) file 1 2 -3")
	f.Fuzz(func(t *testing.T, text string) {
		spaces, err := parseSwaps(text)
		if err != nil && spaces != nil {
			t.Error("spaces beside an error")
		}
		for _, s := range spaces {
			if s.file == "" {
				t.Error("a swap without a name")
			}
		}
	})
}

func FuzzZram(f *testing.F) {
	f.Add(" 3000 1000 1200 0 1300 0 0 0 0\n")
	f.Add("-1 5")
	f.Fuzz(func(t *testing.T, text string) {
		was, is, err := parseZram(text)
		if err == nil && (was < 0 || is < 0) {
			t.Errorf("%d and %d bytes", was, is)
		}
	})
}

func FuzzField(f *testing.F) {
	f.Add("MemTotal:       16384000 kB\n")
	f.Add("MemTotal: 9223372036854775807 kB")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := field("/proc/meminfo", text, "MemTotal")
		if err == nil && (n < 0 || n<<10 < 0) {
			t.Errorf("%d KiB", n)
		}
	})
}
