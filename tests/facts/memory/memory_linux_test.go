package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/bmoe/bmoe/ci/cgroup"
	"github.com/bmoe/bmoe/platform/lock"
	"github.com/bmoe/bmoe/platform/memory"
	"github.com/bmoe/bmoe/platform/pages"
)

const mib = int64(1) << 20

// slack is what a reading may be off by: the process goes on while it is read, and pages are charged in batches and cost page
// tables.
const slack = 16 * mib

// childEnv makes the test binary a process that does what it is told in the group or under the limit it was started in.
const childEnv = "BMOE_TEST_FACTS_MEMORY"

func TestMain(m *testing.M) {
	what := os.Getenv(childEnv)
	if what == "" {
		os.Exit(m.Run())
	}
	if err := child(what); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// told is what a process in a group says of itself.
type told struct {
	Facts memory.Facts
	Ends  bool
	From  string
	Used  int64 // what its group says it uses, read beside the facts
}

func child(what string) error {
	verb, argument, _ := strings.Cut(what, " ")
	switch verb {
	case "tell":
		facts, err := memory.Read()
		if err != nil {
			return err
		}
		used, err := usage(argument)
		if err != nil {
			return err
		}
		ends, from, err := memory.Ends()
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(told{facts, ends, from, used})
	case "hold":
		more, err := strconv.ParseInt(argument, 10, 64)
		if err != nil {
			return err
		}
		facts, err := memory.Read()
		if err != nil {
			return err
		}
		r, err := pages.Alloc(int(facts.Available + more))
		if err != nil {
			return err
		}
		for i := 0; i < len(r.Bytes()); i += pages.Size() {
			r.Bytes()[i] = 1
		}
		fmt.Printf("held %d MiB\n", len(r.Bytes())>>20)
		return nil
	case "lock":
		limit, err := strconv.ParseUint(argument, 10, 64)
		if err != nil {
			return err
		}
		return lockExactly(limit)
	}
	return fmt.Errorf("told to %q", what)
}

// usage is what a group holds and cannot drop.
func usage(dir string) (int64, error) {
	file, prefix := "memory.usage_in_bytes", "total_"
	if _, err := os.Stat(filepath.Join(dir, "memory.current")); err == nil {
		file, prefix = "memory.current", ""
	}
	b, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return 0, err
	}
	stat, err := os.ReadFile(filepath.Join(dir, "memory.stat"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(stat)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == prefix+"inactive_file" || name == prefix+"active_file" {
			cached, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return 0, err
			}
			n -= cached
		}
	}
	return n, nil
}

// group makes a control group of so many bytes. Where this user may make none, the trees of files in platform/memory stand
// for them, and the test says so.
func group(t *testing.T, limit int64) *cgroup.Group {
	t.Helper()
	g, err := cgroup.New(cgroup.Root, fmt.Sprintf("bmoe-facts-%d-%d", os.Getpid(), limit>>20), limit)
	if err != nil {
		t.Logf("NOT CHECKED IN A REAL GROUP of %d MiB, which takes rights: %v. The trees of files in platform/memory/testdata are what is left", limit>>20, err)
		return nil
	}
	t.Cleanup(func() { assert.NoError(t, g.Remove()) })
	return g
}

// swapsPast says that the group can swap for all that its limit says: there is swap, and nothing to keep a group from it.
func swapsPast(g *cgroup.Group) bool {
	for _, file := range []string{"memory.swap.max", "memory.memsw.limit_in_bytes"} {
		if _, err := os.Stat(filepath.Join(g.Path(), file)); err == nil {
			return false
		}
	}
	swaps, err := os.ReadFile("/proc/swaps")
	return err == nil && strings.Count(string(swaps), "\n") > 1
}

func inside(t *testing.T, g *cgroup.Group, what string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	cmd := g.Command(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+what)
	return cmd.Output()
}

func TestGroups(t *testing.T) {
	t.Parallel()
	for _, limit := range []int64{1 << 30, 2 << 30, 4 << 30} {
		t.Run(fmt.Sprint(limit>>30, "GiB"), func(t *testing.T) {
			t.Parallel()
			g := group(t, limit)
			if g == nil {
				// What is left: this process's own facts agree with each other.
				f, err := memory.Read()
				require.NoError(t, err)
				assert.LessOrEqual(t, f.Available, f.Total)
				return
			}
			out, err := inside(t, g, "tell "+g.Path())
			require.NoError(t, err)
			var said told
			require.NoError(t, json.Unmarshal(out, &said))
			assert.Equal(t, limit, said.Facts.Limit, "exactly")
			assert.InDelta(t, limit-said.Used, said.Facts.Available, float64(slack))
			assert.Contains(t, said.Facts.Why, g.Path())
			assert.Equal(t, !swapsPast(g), said.Ends, said.From)
			assert.Contains(t, said.From, g.Path())
		})
	}
}

// What is said to be available can be held, and not much more.
func TestWhatIsAvailableCanBeHeld(t *testing.T) {
	t.Parallel()
	const limit = 1 << 30
	available, err := memory.Read()
	require.NoError(t, err)
	g := group(t, limit+8*mib) // a name of its own
	if g == nil || available.Available < 2*limit {
		t.Logf("NOT CHECKED BY HOLDING IT: %d MiB are available here", available.Available>>20)
		assert.Positive(t, available.Available)
		return
	}
	out, err := inside(t, g, fmt.Sprint("hold ", -slack))
	require.NoError(t, err, "holding what is available, less the slack")
	assert.Contains(t, string(out), "held")

	if swapsPast(g) {
		t.Log("NOT CHECKED THAT MORE IS FATAL: this system has swap and counts none of it in a group")
		return
	}
	_, err = inside(t, g, fmt.Sprint("hold ", 96*mib))
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "holding 96 MiB more")
	status, ok := exit.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	assert.True(t, status.Signaled() && status.Signal() == syscall.SIGKILL, "it ended so: %v", exit)
}

// lockExactly is a process that may lock so many bytes: it locks what it is told it may, and is refused a page more.
func lockExactly(limit uint64) error {
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
		return err
	}
	n, from, err := lock.InPlace()
	if err != nil {
		return err
	}
	page := int64(pages.Size())
	if want := int64(limit) / page * page; n != want {
		return fmt.Errorf("%d may be locked (%s), of a limit of %d", n, from, limit)
	}
	r, err := pages.Alloc(int(n + page))
	if err != nil {
		return err
	}
	if err := r.Lock(0, int(n)); err != nil {
		return fmt.Errorf("%d may be locked (%s), and: %w", n, from, err)
	}
	if left, from, err := lock.InPlace(); err != nil || left != 0 {
		return fmt.Errorf("with all of it locked, %d are left (%s, %v)", left, from, err)
	}
	if err := r.Lock(int(n), int(page)); !errors.Is(err, pages.ErrLockLimit) {
		return fmt.Errorf("a page more than the %d that may be locked: %v", n, err)
	}
	if err := r.Free(); err != nil {
		return err
	}
	// All of it is there again, and the store is the same.
	total, _, err := lock.StoreTotal()
	if err != nil || total != n {
		return fmt.Errorf("of the store %d are left where %d may be locked (%v)", total, n, err)
	}
	if n == 0 {
		_, err := lock.Alloc(int(page))
		if !errors.Is(err, pages.ErrLockLimit) {
			return fmt.Errorf("a store of nothing gave a page: %v", err)
		}
		return nil
	}
	b, err := lock.Alloc(int(n))
	if err != nil {
		return err
	}
	if _, err := lock.Alloc(int(page)); !errors.Is(err, pages.ErrLockLimit) {
		return fmt.Errorf("the empty store gave a page: %v", err)
	}
	return b.Free()
}

func TestLocks(t *testing.T) {
	t.Parallel()
	page := uint64(pages.Size())
	for _, limit := range []uint64{0, page, 1 << 20, 1<<20 + page + 1234} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			failed := make(chan error)
			go func() {
				// The capability that lifts the limit leaves this thread, and so the child; the thread ends with the goroutine.
				runtime.LockOSThread()
				_ = unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_IPC_LOCK, 0, 0, 0)
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), childEnv+"=lock "+fmt.Sprint(limit))
				out, err := cmd.CombinedOutput()
				if err != nil {
					err = fmt.Errorf("%w: %s", err, out)
				}
				failed <- err
			}()
			require.NoError(t, <-failed)
		})
	}
}
