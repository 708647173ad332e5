package memory

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/platform/internal/cgroup"
	"github.com/bmoe/bmoe/platform/pages"
	"github.com/bmoe/bmoe/platform/storage"
)

const mib = int64(1) << 20

func TestSystems(t *testing.T) {
	t.Parallel()
	const system = 8192000 << 10 // MemAvailable of every fixture
	for _, c := range []struct {
		tree             string
		available, limit int64
		why              []string
	}{
		{"none", system, 0, []string{"the system"}},
		{"v1", (3072 - 200) * mib, 3072 * mib, []string{"memory.limit_in_bytes", "3072 MiB", "/sys/fs/cgroup/memory/user/job", "200 MiB"}},
		{"v1-parent", 148 * mib, 2048 * mib, []string{"/sys/fs/cgroup/memory/user,", "1900 MiB"}},
		{"v1-flat", (3072 - 200) * mib, 3072 * mib, []string{"user/job"}},
		{"v1-unlimited", system, 0, []string{"the system"}},
		{"v2", 3500 * mib, 6000 * mib, []string{"memory.max", "6000 MiB", "app.scope", "2500 MiB"}},
		{"v2-parent", 700 * mib, 3000 * mib, []string{"memory.max", "/sys/fs/cgroup/user.slice,"}},
		{"v2-high", 3000 * mib, 5000 * mib, []string{"memory.high", "app.scope"}},
		{"v2-exceeded", 0, 1000 * mib, []string{"memory.max"}},
		{"hybrid", (3072 - 200) * mib, 3072 * mib, []string{"memory.limit_in_bytes"}},
		{"container", 824 * mib, 1024 * mib, []string{"/sys/fs/cgroup/memory,"}},
		{"container-foreign", 824 * mib, 1024 * mib, []string{"/sys/fs/cgroup/memory,"}},
	} {
		f, err := readFrom(os.DirFS(filepath.Join("testdata", c.tree)), unlimited)
		require.NoError(t, err, c.tree)
		assert.EqualValues(t, 16384000<<10, f.Total, c.tree)
		assert.Equal(t, c.available, f.Available, c.tree)
		assert.Equal(t, c.limit, f.Limit, c.tree)
		for _, word := range c.why {
			assert.Contains(t, f.Why, word, c.tree)
		}
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	group := "sys/fs/cgroup/user.slice/app.scope/"
	for _, c := range []struct{ file, text, says string }{
		{"proc/meminfo", "MemTotal: 5 kB\n", "MemAvailable"},
		{"proc/meminfo", "MemTotal: lots kB\n", "/proc/meminfo"},
		{"proc/self/cgroup", "nonsense\n", "/proc/self/cgroup"},
		{group + "memory.max", "much\n", "memory.max"},
		{group + "memory.current", "", "memory.current"},
		{group + "memory.stat", "inactive_file x\n", "memory.stat"},
	} {
		tree := clone(t, "testdata/v2")
		tree[c.file] = &fstest.MapFile{Data: []byte(c.text)}
		_, err := readFrom(tree, unlimited)
		require.ErrorContains(t, err, c.says)
	}
	tree := clone(t, "testdata/v2")
	delete(tree, group+"memory.current")
	_, err := readFrom(tree, unlimited)
	require.ErrorContains(t, err, "memory.current")

	delete(tree, "proc/meminfo")
	_, err = readFrom(tree, unlimited)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// As on Android: a process sees that there are control groups and not what they say.
func TestGroupsThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	f, err := readFrom(secretive{clone(t, "testdata/v2")}, unlimited)
	require.NoError(t, err)
	assert.Zero(t, f.Limit)
	assert.Contains(t, f.Why, "the system")
}

type secretive struct{ fs.FS }

func (s secretive) Open(name string) (fs.File, error) {
	if strings.HasPrefix(name, "sys/") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return s.FS.Open(name)
}

func clone(t *testing.T, dir string) fstest.MapFS {
	t.Helper()
	tree := fstest.MapFS{}
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, path))
		tree[path] = &fstest.MapFile{Data: b}
		return err
	}))
	return tree
}

// childEnv makes the test binary a process that does what its standard input says, and answers with what Read says.
const childEnv = "BMOE_TEST_MEMORY_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func child() error {
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		verb, argument, _ := strings.Cut(commands.Text(), " ")
		switch verb {
		case "hold":
			n, err := strconv.Atoi(argument)
			if err != nil {
				return err
			}
			held, err := pages.Alloc(n) // until the process ends
			if err != nil {
				return err
			}
			for i := 0; i < n; i += pages.Size() {
				held.Bytes()[i] = 1
			}
		case "cache":
			f, err := os.Open(argument)
			if err != nil {
				return err
			}
			if _, err := io.Copy(io.Discard, f); err != nil {
				return err
			}
			if err := f.Close(); err != nil {
				return err
			}
		}
		facts, err := Read()
		if err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode(facts); err != nil {
			return err
		}
	}
	return commands.Err()
}

// limitedGroup makes a control group below this process's own that may hold limit bytes, and returns its directory.
func limitedGroup(t *testing.T, limit int64) string {
	t.Helper()
	groups, err := cgroup.Of(os.DirFS("/"), "memory")
	require.NoError(t, err)
	var refused error
	for _, g := range groups {
		name := "memory.limit_in_bytes"
		if g.V2 {
			name = "memory.max"
		}
		dir, err := os.MkdirTemp("/"+g.Dir, "bmoe-test-")
		if err != nil {
			refused = errors.Join(refused, err)
			continue
		}
		t.Cleanup(func() { assert.NoError(t, os.Remove(dir)) })
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strconv.FormatInt(limit, 10)), 0); err != nil {
			refused = errors.Join(refused, err)
			continue
		}
		return dir
	}
	t.Skipf("this system lets this user limit no control group: %v", refused)
	return ""
}

// A process in a real group, held by the kernel to 256 MiB: its limit is found, what it holds counts, the file cache that
// it fills does not.
func TestProcessInALimitedGroup(t *testing.T) {
	t.Parallel()
	const limit = 256 * mib
	dir := limitedGroup(t, limit)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, make([]byte, 150*mib), 0o600))
	require.NoError(t, storage.DropCache(file), "what this process cached is not charged to the child")

	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		assert.NoError(t, in.Close())
		assert.NoError(t, cmd.Wait())
	})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0))
	answers := json.NewDecoder(out)
	ask := func(command string) Facts {
		_, err := fmt.Fprintln(in, command)
		require.NoError(t, err)
		var f Facts
		require.NoError(t, answers.Decode(&f))
		return f
	}

	empty := ask("read")
	assert.Equal(t, limit, empty.Limit)
	assert.Greater(t, empty.Total, empty.Limit)
	assert.InDelta(t, limit, empty.Available, float64(16*mib))
	assert.Contains(t, empty.Why, dir)

	holding := ask(fmt.Sprint("hold ", 100*mib))
	assert.InDelta(t, 100*mib, empty.Available-holding.Available, float64(16*mib))

	cached := ask("cache " + file)
	assert.InDelta(t, holding.Available, cached.Available, float64(16*mib))

	// the file is in the page cache on the group's account, as far as it fits
	usage := "memory.usage_in_bytes"
	if _, err := os.Stat(filepath.Join(dir, usage)); err != nil {
		usage = "memory.current"
	}
	b, err := os.ReadFile(filepath.Join(dir, usage))
	require.NoError(t, err)
	used, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	require.NoError(t, err)
	assert.Greater(t, used, 200*mib)
}

// unlimited is a process that was started with no limit of its own.
func unlimited(int) (uint64, error) { return math.MaxUint64, nil }
