package memory

import (
	"fmt"
	"io/fs"
	"math"

	"golang.org/x/sys/unix"
)

// resource is a limit of setrlimit(2) on memory, and the line of /proc/self/status that says what counts against it.
type resource struct {
	name string
	line string
	id   int
}

var resources = []resource{
	{"the limit on address space (ulimit -v)", "VmSize", unix.RLIMIT_AS},
	{"the limit on data (ulimit -d)", "VmData", unix.RLIMIT_DATA},
}

// rlimit is the soft limit of a resource in bytes.
func rlimit(id int) (uint64, error) {
	var l unix.Rlimit
	err := unix.Getrlimit(id, &l)
	return l.Cur, err
}

// caps are the limits that this process was started with. soft tells one.
func caps(tree fs.FS, soft func(id int) (uint64, error)) ([]bound, error) {
	var found []bound
	for _, r := range resources {
		n, err := soft(r.id)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
		if n >= math.MaxInt64 {
			continue
		}
		held, err := statusKiB(tree, r.line)
		if err != nil {
			return nil, fmt.Errorf("%s is %d MiB: %w", r.name, n>>20, err)
		}
		found = append(found, bound{r.name, int64(n), held << 10})
	}
	return found, nil
}

// statusKiB is a line of /proc/self/status in KiB.
func statusKiB(tree fs.FS, line string) (int64, error) {
	b, err := fs.ReadFile(tree, "proc/self/status")
	if err != nil {
		return 0, err
	}
	return field("/proc/self/status", string(b), line)
}
