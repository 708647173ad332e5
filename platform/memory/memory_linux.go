package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/bmoe/bmoe/platform/internal/cgroup"
)

func read() (Facts, error) { return readFrom(os.DirFS("/")) }

// readFrom reads the system whose root is tree: /proc/meminfo, and each memory control group this process is in.
func readFrom(tree fs.FS) (Facts, error) {
	info, err := counters(tree, "proc/meminfo")
	if err != nil {
		return Facts{}, err
	}
	total, ok := info["MemTotal"]
	available, ok2 := info["MemAvailable"]
	if !ok || !ok2 {
		return Facts{}, errors.New("/proc/meminfo states no MemTotal or no MemAvailable")
	}
	f := Facts{Total: total << 10, Available: available << 10, Why: "what the system has available"}
	groups, err := cgroup.Of(tree, "memory")
	if err != nil {
		return Facts{}, err
	}
	alone := false // an ancestor in version 1 does not count what this group holds
	for _, g := range groups {
		if alone && !g.V2 {
			continue
		}
		limits, err := limitsOf(tree, g)
		if err != nil {
			return Facts{}, err
		}
		for _, l := range limits {
			if f.Limit == 0 || l.bytes < f.Limit {
				f.Limit = l.bytes
			}
			if left := max(0, l.bytes-l.held); left < f.Available {
				f.Available = left
				f.Why = fmt.Sprintf("%s, %d MiB, of the control group /%s, which holds %d MiB that cannot be dropped",
					l.name, l.bytes>>20, g.Dir, l.held>>20)
			}
		}
		if alone, err = countedAlone(tree, g); err != nil {
			return Facts{}, err
		}
	}
	return f, nil
}

// limit is a bound on a control group.
type limit struct {
	name  string // the file that states it
	bytes int64
	held  int64 // what the group holds and cannot drop: its use without the file cache, which is reclaimed first
}

// limitsOf reads what bounds a group. memory.high bounds it as memory.max does: a group above it is slowed to a crawl.
func limitsOf(tree fs.FS, g cgroup.Group) ([]limit, error) {
	names, usage, prefix := []string{"memory.limit_in_bytes"}, "memory.usage_in_bytes", "total_"
	if g.V2 {
		names, usage, prefix = []string{"memory.max", "memory.high"}, "memory.current", ""
	}
	var limits []limit
	for _, name := range names {
		n, ok, err := value(tree, path.Join(g.Dir, name))
		if err != nil {
			return nil, err
		}
		if ok && n < noLimit {
			limits = append(limits, limit{name: name, bytes: n})
		}
	}
	if limits == nil {
		return nil, nil
	}
	used, ok, err := value(tree, path.Join(g.Dir, usage))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("the control group /%s has a memory limit and no %s", g.Dir, usage)
	}
	stat, err := counters(tree, path.Join(g.Dir, "memory.stat"))
	if err != nil {
		return nil, err
	}
	held := max(0, used-stat[prefix+"inactive_file"]-stat[prefix+"active_file"])
	for i := range limits {
		limits[i].held = held
	}
	return limits, nil
}

// noLimit and above stand for no limit. Version 1 says so with the largest multiple of a page that fits.
const noLimit = math.MaxInt64 &^ (1<<20 - 1)

// countedAlone reports whether the group's parent does not count what the group holds, nor bound it, as version 1 had it
// by default before Linux 5.11.
func countedAlone(tree fs.FS, g cgroup.Group) (bool, error) {
	if g.V2 {
		return false, nil
	}
	n, ok, err := value(tree, path.Join(path.Dir(g.Dir), "memory.use_hierarchy"))
	return ok && n == 0, err
}

// value reads a file of one number; "max" is the largest. A file that is not there, or not for this process to
// see (as on Android), gives false.
func value(tree fs.FS, name string) (int64, bool, error) {
	b, err := fs.ReadFile(tree, name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	text := strings.TrimSpace(string(b))
	if text == "max" {
		return math.MaxInt64, true, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("/%s: %w", name, err)
	}
	return n, true, nil
}

// counters reads lines of a name and a number, whether or not a colon and a unit stand with them.
func counters(tree fs.FS, name string) (map[string]int64, error) {
	b, err := fs.ReadFile(tree, name)
	if err != nil {
		return nil, err
	}
	c := map[string]int64{}
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		n, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("/%s: %w", name, err)
		}
		c[strings.TrimSuffix(fields[0], ":")] = n
	}
	return c, nil
}
