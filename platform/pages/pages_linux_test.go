package pages

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// limitedEnv makes the test binary a process that may lock limitedTo bytes.
const (
	limitedEnv = "BMOE_TEST_PAGES_LIMITED"
	limitedTo  = 1 << 20
)

func TestMain(m *testing.M) {
	if os.Getenv(limitedEnv) != "" {
		if err := limited(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// limited is what a process that may lock 1 MiB sees.
func limited() error {
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: limitedTo, Max: limitedTo}); err != nil {
		return err
	}
	r, err := Alloc(4 << 20)
	if err != nil {
		return err
	}
	if err := r.Lock(0, 4<<20); !errors.Is(err, ErrLockLimit) || !strings.Contains(err.Error(), "ulimit -l") {
		return fmt.Errorf("locking more than the limit: %v", err)
	}
	if err := r.Lock(0, limitedTo); err != nil {
		return fmt.Errorf("the refused lock left something locked: %w", err)
	}
	if err := r.Unlock(0, limitedTo/2); err != nil {
		return err
	}
	if err := r.Release(limitedTo/2, limitedTo/2); err == nil || !strings.Contains(err.Error(), "unlock it first") {
		return fmt.Errorf("releasing what is locked: %v", err)
	}
	return r.Free()
}

func TestLockBeyondTheLimit(t *testing.T) {
	t.Parallel()
	failed := make(chan error)
	go func() {
		// The capability that lifts the limit leaves this thread, and so the child; the thread ends with the goroutine.
		runtime.LockOSThread()
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_IPC_LOCK, 0, 0, 0)
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), limitedEnv+"=1")
		out, err := child.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		failed <- err
	}()
	require.NoError(t, <-failed)
}

func TestReleasedPagesAreZeroAndGone(t *testing.T) {
	t.Parallel()
	r := alloc(t, 8<<20)
	for i := range r.Bytes() {
		r.Bytes()[i] = 1
	}
	require.NoError(t, r.Release(0, 8<<20))
	present := resident(t, r)
	assert.Zero(t, present)
	assert.Zero(t, r.Bytes()[0])
	assert.Zero(t, r.Bytes()[8<<20-1])
}

func TestHugePagesBackALargeRegion(t *testing.T) {
	t.Parallel()
	mode, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	offered := err == nil && !strings.Contains(string(mode), "[never]")
	r := alloc(t, 4*HugeSize)
	assert.Equal(t, offered, r.Huge())
	assert.False(t, alloc(t, HugeSize-1).Huge())
	if !offered {
		return
	}
	r.Bytes()[HugeSize] = 1 // one touch brings the whole huge page
	assert.Equal(t, HugeSize/Size(), resident(t, r))
}

// resident counts the pages of r that are in memory: bit 63 of a page's entry in pagemap.
func resident(t *testing.T, r *Region) int {
	t.Helper()
	file, err := os.Open("/proc/self/pagemap")
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	entries := make([]byte, len(r.Bytes())/Size()*8)
	_, err = file.ReadAt(entries, int64(r.Base())/int64(Size())*8)
	require.NoError(t, err)
	n := 0
	for i := 0; i < len(entries); i += 8 {
		n += int(binary.NativeEndian.Uint64(entries[i:]) >> 63)
	}
	return n
}
