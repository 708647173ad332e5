package pages

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// askHuge asks for transparent huge pages and reports whether the kernel gives them to those who ask.
func (r *Region) askHuge() bool {
	if unix.Madvise(r.bytes, unix.MADV_HUGEPAGE) != nil {
		return false // a kernel built without them
	}
	mode, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	return err == nil && !bytes.Contains(mode, []byte("[never]"))
}

func (r *Region) release(part []byte) error {
	err := unix.Madvise(part, unix.MADV_DONTNEED)
	if errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("the range is locked, unlock it first: %w", err)
	}
	return err
}

// LockLimit is how many bytes this process may lock beyond those it holds locked now.
func LockLimit() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("read how much memory may be locked: %w", err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		return 0, fmt.Errorf("read how much memory may be locked: %w", err)
	}
	return lockLimit(string(status), limit.Cur)
}

// lockLimit takes the text of /proc/self/status and RLIMIT_MEMLOCK in bytes. CAP_IPC_LOCK lifts the limit.
func lockLimit(status string, limit uint64) (int64, error) {
	var locked int64
	lines := bufio.NewScanner(strings.NewReader(status))
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimSpace(value)
		switch key {
		case "CapEff":
			set, err := strconv.ParseUint(value, 16, 64)
			if err != nil {
				return 0, fmt.Errorf("read how much memory may be locked: capabilities %q: %w", value, err)
			}
			if set&(1<<unix.CAP_IPC_LOCK) != 0 {
				return Unlimited, nil
			}
		case "VmLck":
			kib, err := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read how much memory may be locked: VmLck %q: %w", value, err)
			}
			locked = kib << 10
		}
	}
	if limit >= uint64(Unlimited) {
		return Unlimited, nil
	}
	return max(0, int64(limit)-locked), nil
}
