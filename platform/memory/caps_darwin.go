package memory

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/bmoe/bmoe/platform/internal/mach"
)

// caps are the limits of setrlimit(2) that this process was started with. What it has taken of its data is not stated: what
// of it is in memory stands for that.
func caps() ([]bound, error) {
	var found []bound
	for _, r := range []struct {
		name string
		id   int
	}{
		{"the limit on address space (ulimit -v)", unix.RLIMIT_AS},
		{"the limit on data (ulimit -d)", unix.RLIMIT_DATA},
	} {
		var l unix.Rlimit
		if err := unix.Getrlimit(r.id, &l); err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
		if l.Cur >= math.MaxInt64 {
			continue
		}
		virtual, resident, err := mach.Task()
		if err != nil {
			return nil, fmt.Errorf("%s is %d MiB: %w", r.name, l.Cur>>20, err)
		}
		held := virtual
		if r.id == unix.RLIMIT_DATA {
			held = resident
		}
		found = append(found, bound{r.name, int64(l.Cur), held})
	}
	return found, nil
}
