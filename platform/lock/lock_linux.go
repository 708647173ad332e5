package lock

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bmoe/bmoe/platform/internal/privilege"
	"github.com/bmoe/bmoe/platform/memory"
)

func inPlace() (int64, string, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		return 0, "", fmt.Errorf("RLIMIT_MEMLOCK: %w", err)
	}
	return inPlaceOf(os.DirFS("/"), limit.Cur, os.Getpagesize(), holdable)
}

// holdable is what this process may hold at all, which is as much as it can lock.
func holdable() (int64, error) {
	f, err := memory.Read()
	return f.Available, err
}

// inPlaceOf follows mlock(2): a process without CAP_IPC_LOCK may lock whole pages up to RLIMIT_MEMLOCK, those it has locked
// counted. tree is the root of the file system.
func inPlaceOf(tree fs.FS, limit uint64, page int, holdable func() (int64, error)) (int64, string, error) {
	free, err := privilege.LocksFreely(tree)
	if err != nil {
		return 0, "", err
	}
	most, err := holdable()
	if err != nil {
		return 0, "", err
	}
	switch {
	case free:
		return most, "CAP_IPC_LOCK lifts the limit: as much as this process may hold", nil
	case limit >= math.MaxInt64:
		return most, "no limit (ulimit -l): as much as this process may hold", nil
	}
	locked, err := locked(tree)
	if err != nil {
		return 0, "", err
	}
	from := fmt.Sprintf("the limit of %d KiB (ulimit -l), of which this process has locked %d KiB", limit>>10, locked>>10)
	left := max(0, int64(limit)/int64(page)*int64(page)-locked)
	if most < left {
		return most, from + ", and no more than it may hold", nil
	}
	return left, from, nil
}

// locked is what this process holds locked: VmLck, which the kernel counts in pages and states in KiB.
func locked(tree fs.FS) (int64, error) {
	status, err := fs.ReadFile(tree, "proc/self/status")
	if err != nil {
		return 0, err
	}
	return parseLocked(string(status))
}

func parseLocked(status string) (int64, error) {
	for line := range strings.Lines(status) {
		value, ok := strings.CutPrefix(line, "VmLck:")
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64>>10 {
			return 0, fmt.Errorf("/proc/self/status: VmLck is %q, no number of KiB", strings.TrimSpace(value))
		}
		return n << 10, nil
	}
	return 0, errors.New("/proc/self/status states no VmLck")
}
