package safe

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// limited is a run that may lock so many KiB: without the capability that knows no limit, and with the system's limit.
func limited(t *testing.T, kib int, args ...string) outcome {
	t.Helper()
	c := command(args...)
	line := []string{"sh", "-c", `ulimit -l "$0" && exec "$@"`, strconv.Itoa(kib), cli}
	if os.Geteuid() == 0 {
		line = append([]string{"setpriv", "--inh-caps=-ipc_lock", "--bounding-set=-ipc_lock"}, line...)
	}
	path, err := exec.LookPath(line[0])
	require.NoError(t, err, "%s is part of every Linux this project builds on", line[0])
	c.Path, c.Args = path, append(line, args...)
	c.Env = append(c.Env, "BMOE_THREADS=1")
	return wait(t, c)
}

// locks is the report's line on locked memory, in MiB.
var locks = regexp.MustCompile(`\n +\d+ MiB locked in place: (\d+) of the cache and (\d+) of the dense set; the system refused (\d+) and (\d+) MiB`)

// The system locks what it will, and the run goes on: with all of its cache, with a part, or with a smaller one where that
// was asked for. The answer is the same. One token's experts are 2.5 MiB; the dense set is below 2 MiB.
func TestLockingTheCache(t *testing.T) {
	t.Parallel()
	path := model(t, moe)[0]
	args := []string{"-m", path, "-p", "Hello", "-n", "12", "-c", "256", "--ignore-eos", "--moe-stream", "--cache-mb", "7"}
	want := run(t, args...).stdout
	for name, c := range map[string]struct {
		kib     int
		flags   []string
		locked  [2]int // of the cache, MiB, at least and at most
		refused bool
		says    string
	}{
		"as much as is asked for": {8192, []string{"--cache-pin"}, [2]int{6, 7}, false, ""},
		"a part, and a fit":       {5120, []string{"--cache-pin", "--cache-pin-fit"}, [2]int{3, 5}, true, "so the cache is "},
		"a part, and no fit":      {5120, []string{"--cache-pin"}, [2]int{4, 5}, true, "which stay ordinary memory"},
		"less than a token's":     {1024, []string{"--cache-pin", "--cache-pin-fit"}, [2]int{0, 0}, true, "ordinary memory at its full "},
		"nothing":                 {0, []string{"--cache-pin", "--cache-pin-fit"}, [2]int{0, 0}, true, "ordinary memory at its full "},
		"nothing for the dense":   {0, []string{"--dense-weights", "pinned"}, [2]int{0, 0}, true, "of the dense set and refused "},
		"nobody asked for any":    {0, nil, [2]int{0, 0}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if hard := hardLimit(t); c.kib > hard {
				t.Logf("this user may lock %d KiB at most: the limit of %d is not tried", hard, c.kib)
				c.kib, c.refused = hard, true
				c.locked, c.says = [2]int{0, hard >> 10}, ""
			}
			o := limited(t, c.kib, append(args, c.flags...)...)
			if !o.orderly(t, done) {
				return
			}
			assert.Equal(t, want, o.stdout)
			said := locks.FindStringSubmatch(o.stderr)
			if len(c.flags) == 0 {
				assert.Nil(t, said, "nothing is said of locks")
				return
			}
			require.NotNil(t, said, o.stderr)
			cache, refused := number(t, said[1]), number(t, said[3])+number(t, said[4])
			assert.GreaterOrEqual(t, cache, c.locked[0], o.stderr)
			assert.LessOrEqual(t, cache, c.locked[1], o.stderr)
			assert.Equal(t, c.refused, refused > 0 || c.says != "" && regexp.MustCompile(regexp.QuoteMeta(c.says)).MatchString(o.stderr), o.stderr)
			if c.says != "" {
				assert.Contains(t, o.stderr, c.says)
			}
		})
	}
}

// hardLimit is what ulimit -l may be raised to here, in KiB.
func hardLimit(t *testing.T) int {
	t.Helper()
	out, err := exec.Command("sh", "-c", "ulimit -H -l").Output()
	require.NoError(t, err)
	var n int
	if _, err := fmt.Sscan(string(out), &n); err != nil {
		return 1 << 30 // "unlimited"
	}
	return n
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}
