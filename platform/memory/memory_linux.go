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

func read() (Facts, error) { return readFrom(os.DirFS("/"), rlimit) }

// readFrom reads the system whose root is tree: /proc/meminfo, each memory control group this process is in, and the limits
// that it was started with, which soft tells.
func readFrom(tree fs.FS, soft func(id int) (uint64, error)) (Facts, error) {
	total, err := meminfo(tree, "MemTotal")
	if err != nil {
		return Facts{}, err
	}
	available, err := meminfo(tree, "MemAvailable")
	if err != nil {
		return Facts{}, err
	}
	f := Facts{Total: total, Available: min(available, total), Why: "what the system has available"}
	groups, err := counting(tree)
	if err != nil {
		return Facts{}, err
	}
	for _, g := range groups {
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
	}
	bounds, err := caps(tree, soft)
	if err != nil {
		return Facts{}, err
	}
	f.within(bounds)
	return f, nil
}

// counting is the memory control groups that count what this process holds, innermost first.
func counting(tree fs.FS) ([]cgroup.Group, error) {
	groups, err := cgroup.Of(tree, "memory")
	if err != nil {
		return nil, err
	}
	var counted []cgroup.Group
	alone := false // an ancestor in version 1 does not count what this group holds
	for _, g := range groups {
		if alone && !g.V2 {
			continue
		}
		counted = append(counted, g)
		if alone, err = countedAlone(tree, g); err != nil {
			return nil, err
		}
	}
	return counted, nil
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
	held := used
	for _, name := range []string{prefix + "inactive_file", prefix + "active_file"} {
		n, ok := stat[name]
		if !ok {
			return nil, fmt.Errorf("/%s/memory.stat states no %s", g.Dir, name)
		}
		held -= n
	}
	held = max(0, held)
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

// meminfo is a line of /proc/meminfo in bytes.
func meminfo(tree fs.FS, line string) (int64, error) {
	b, err := fs.ReadFile(tree, "proc/meminfo")
	if err != nil {
		return 0, err
	}
	n, err := field("/proc/meminfo", string(b), line)
	return n << 10, err
}

// field is the number of a line "name: number kB" in the text of a file that is called so.
func field(file, text, name string) (int64, error) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name+":")
		if !ok {
			continue
		}
		number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64>>10 {
			return 0, fmt.Errorf("%s: %s is %q, no number of KiB", file, name, strings.TrimSpace(rest))
		}
		return n, nil
	}
	return 0, fmt.Errorf("%s states no %s", file, name)
}
