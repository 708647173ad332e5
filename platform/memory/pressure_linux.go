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

func ends() (bool, string, error)                          { return endsIn(os.DirFS("/")) }
func compresses() (bool, string, error)                    { return compressesIn(os.DirFS("/")) }
func swaps() (bool, string, error)                         { return swapsIn(os.DirFS("/")) }
func compressorRatio() (float64, string, error)            { return ratioIn(os.DirFS("/")) }
func idleAnonymous() (bytes int64, from string, err error) { return idleIn(os.DirFS("/")) }

// endsIn looks for a control group that limits memory and gives it no swap to fall back on. memory.high and setrlimit slow
// a process or refuse it memory, and end nobody.
func endsIn(tree fs.FS) (bool, string, error) {
	groups, err := counting(tree)
	if err != nil {
		return false, "", err
	}
	limited := ""
	for _, g := range groups {
		name := "memory.limit_in_bytes"
		if g.V2 {
			name = "memory.max"
		}
		n, ok, err := stated(tree, g, name)
		if err != nil {
			return false, "", err
		}
		if !ok || n >= noLimit {
			continue
		}
		limited = fmt.Sprintf("/%s of %d MiB", path.Join(g.Dir, name), n>>20)
		why, err := noSwap(tree, groups)
		if err != nil {
			return false, "", err
		}
		if why != "" {
			return true, limited + ", and " + why + atTheLimit(tree, g), nil
		}
	}
	if limited != "" {
		return false, limited + " is met by swapping first", nil
	}
	return false, "no control group of this process limits memory", nil
}

// atTheLimit tells of a group of version 1 whose processes are stopped for good where others would be ended.
func atTheLimit(tree fs.FS, g cgroup.Group) string {
	control, err := counters(tree, path.Join(g.Dir, "memory.oom_control"))
	if err == nil && control["oom_kill_disable"] == 1 {
		return "; memory.oom_control stops the process there, for good"
	}
	return ""
}

// stated reads a file of one number in a group. A file that may not be read, as on Android, leaves the answer open; one that
// is not there is no limit.
func stated(tree fs.FS, g cgroup.Group, name string) (int64, bool, error) {
	file := path.Join(g.Dir, name)
	if _, err := fs.ReadFile(tree, file); errors.Is(err, fs.ErrPermission) {
		return 0, false, fmt.Errorf("/%s: %w", file, fs.ErrPermission)
	}
	return value(tree, file)
}

// noSwap is why nothing of this process can be swapped out, "" where something can.
func noSwap(tree fs.FS, groups []cgroup.Group) (string, error) {
	spaces, err := swapSpaces(tree)
	if err != nil {
		return "", err
	}
	if len(spaces) == 0 {
		return "no swap is active (/proc/swaps)", nil
	}
	for _, g := range groups {
		why, err := groupNoSwap(tree, g)
		if why != "" || err != nil {
			return why, err
		}
	}
	return "", nil
}

// groupNoSwap is the same for one group: version 2 limits swap alone, version 1 memory and swap together, and there a group
// may also be set to never swap.
func groupNoSwap(tree fs.FS, g cgroup.Group) (string, error) {
	if g.V2 {
		n, ok, err := stated(tree, g, "memory.swap.max")
		if err != nil || !ok || n > 0 {
			return "", err
		}
		return fmt.Sprintf("/%s/memory.swap.max is 0", g.Dir), nil
	}
	limit, limited, err := stated(tree, g, "memory.limit_in_bytes")
	if err != nil {
		return "", err
	}
	both, ok, err := stated(tree, g, "memory.memsw.limit_in_bytes")
	if err != nil {
		return "", err
	}
	if limited && ok && limit < noLimit && both <= limit {
		return fmt.Sprintf("/%s/memory.memsw.limit_in_bytes leaves nothing for swap", g.Dir), nil
	}
	eager, ok, err := stated(tree, g, "memory.swappiness")
	if err != nil || !ok || eager > 0 || g.Dir == "." {
		return "", err
	}
	return fmt.Sprintf("/%s/memory.swappiness is 0", g.Dir), nil
}

// space is one active swap.
type space struct {
	file     string
	priority int64
}

// compressed says that the space is a compressed block device in memory.
func (s space) compressed() bool { return strings.HasPrefix(path.Base(s.file), "zram") }

// swapSpaces reads /proc/swaps: a heading, then file, type, size, used and priority of each. A kernel without swap has no
// such file and says SwapTotal: 0; nothing is known from a SwapTotal alone of what kind it is.
func swapSpaces(tree fs.FS) ([]space, error) {
	b, err := fs.ReadFile(tree, "proc/swaps")
	if err != nil {
		total, err2 := meminfo(tree, "SwapTotal")
		switch {
		case err2 != nil:
			return nil, errors.Join(err, err2)
		case total > 0:
			return nil, fmt.Errorf("there is swap of %d MiB (SwapTotal), and not of which kind: %w", total>>20, err)
		}
		return nil, nil
	}
	return parseSwaps(string(b))
}

func parseSwaps(text string) ([]space, error) {
	var spaces []space
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		fields := strings.Fields(line)
		if i == 0 || len(fields) == 0 {
			continue
		}
		if len(fields) < 5 {
			return nil, fmt.Errorf("/proc/swaps: %q is no swap", line)
		}
		// A name's spaces are escaped, and "(deleted)" may follow it: what counts stands at the end.
		priority, err := strconv.ParseInt(fields[len(fields)-1], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("/proc/swaps: %q is no priority", fields[len(fields)-1])
		}
		spaces = append(spaces, space{fields[0], priority})
	}
	return spaces, nil
}

// compressesIn says yes where what this process could swap out goes to compressed memory first: zram is the first swap that
// is filled, or zswap stands before whichever is.
func compressesIn(tree fs.FS) (bool, string, error) {
	spaces, err := swapSpaces(tree)
	if err != nil {
		return false, "", err
	}
	groups, err := counting(tree)
	if err != nil {
		return false, "", err
	}
	why, err := noSwap(tree, groups)
	if err != nil {
		return false, "", err
	}
	if why != "" {
		return false, "anonymous memory has nowhere to go: " + why, nil
	}
	first := spaces[0]
	for _, s := range spaces[1:] {
		if s.priority > first.priority {
			first = s
		}
	}
	if first.compressed() {
		return true, first.file + " is the first swap (/proc/swaps)", nil
	}
	const zswap = "sys/module/zswap/parameters/enabled"
	b, err := fs.ReadFile(tree, zswap)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, "the first swap is " + first.file + " (/proc/swaps), and the kernel has no zswap", nil
	case err != nil:
		return false, "", err
	}
	switch text := strings.TrimSpace(string(b)); text {
	case "Y", "1":
		off, err := noZswap(tree, groups)
		if err != nil {
			return false, "", err
		}
		if off != "" {
			return false, off, nil
		}
		return true, "zswap is on (/" + zswap + "), before " + first.file, nil
	case "N", "0":
		return false, "the first swap is " + first.file + " (/proc/swaps), and zswap is off (/" + zswap + ")", nil
	default:
		return false, "", fmt.Errorf("/%s says %q, neither Y nor N", zswap, text)
	}
}

// noZswap names a group that is given no room in zswap.
func noZswap(tree fs.FS, groups []cgroup.Group) (string, error) {
	for _, g := range groups {
		if n, ok, err := stated(tree, g, "memory.zswap.max"); err != nil {
			return "", err
		} else if ok && n == 0 && g.V2 {
			return fmt.Sprintf("/%s/memory.zswap.max is 0", g.Dir), nil
		}
	}
	return "", nil
}

// swapsIn says yes where this process's memory can be written to storage: compressed memory is no storage.
func swapsIn(tree fs.FS) (bool, string, error) {
	spaces, err := swapSpaces(tree)
	if err != nil {
		return false, "", err
	}
	groups, err := counting(tree)
	if err != nil {
		return false, "", err
	}
	why, err := noSwap(tree, groups)
	if err != nil || why != "" {
		return false, why, err
	}
	for _, s := range spaces {
		if s.compressed() {
			continue
		}
		from := s.file + " (/proc/swaps)"
		for _, g := range groups {
			if n, ok, err := stated(tree, g, "memory.swap.max"); err == nil && ok && g.V2 && n < noLimit {
				from += fmt.Sprintf(", no more than %d MiB of it (/%s/memory.swap.max)", n>>20, g.Dir)
			}
		}
		return true, from, nil
	}
	return false, "every swap is compressed memory (/proc/swaps)", nil
}

// ratioIn adds up what the active zram devices hold, as their mm_stat says it: bytes as they were, then compressed. Of zswap
// /proc/meminfo says the same.
func ratioIn(tree fs.FS) (float64, string, error) {
	yes, from, err := compressesIn(tree)
	if err != nil {
		return 0, "", err
	}
	if !yes {
		return 0, "", errors.New("nothing is compressed here: " + from)
	}
	spaces, err := swapSpaces(tree)
	if err != nil {
		return 0, "", err
	}
	var original, compressed float64
	var sources []string
	for _, s := range spaces {
		if !s.compressed() {
			continue
		}
		file := "sys/block/" + path.Base(s.file) + "/mm_stat"
		b, err := fs.ReadFile(tree, file)
		if err != nil {
			return 0, "", err
		}
		was, is, err := parseZram(string(b))
		if err != nil {
			return 0, "", fmt.Errorf("/%s: %w", file, err)
		}
		original, compressed = original+float64(was), compressed+float64(is)
		sources = append(sources, "/"+file)
	}
	if len(sources) == 0 {
		was, err := meminfo(tree, "Zswapped")
		if err != nil {
			return 0, "", err
		}
		is, err := meminfo(tree, "Zswap")
		if err != nil {
			return 0, "", err
		}
		original, compressed, sources = float64(was), float64(is), []string{"Zswapped and Zswap of /proc/meminfo"}
	}
	if original == 0 || compressed == 0 {
		return 0, "", errors.New("the compressor holds nothing yet (" + strings.Join(sources, ", ") + ")")
	}
	return original / compressed, strings.Join(sources, ", "), nil
}

// parseZram reads mm_stat: orig_data_size and compr_data_size come first.
func parseZram(text string) (original, compressed int64, err error) {
	fields := strings.Fields(text)
	for i, into := range []*int64{&original, &compressed} {
		name := []string{"orig_data_size", "compr_data_size"}[i]
		if i >= len(fields) {
			return 0, 0, errors.New("states no " + name)
		}
		if *into, err = strconv.ParseInt(fields[i], 10, 64); err != nil || *into < 0 {
			return 0, 0, fmt.Errorf("%s is %q, no number of bytes", name, fields[i])
		}
	}
	return original, compressed, nil
}

// idleIn is the kernel's inactive list of anonymous pages. In a group with a limit it is the group's own: what others leave
// idle makes no room in it.
func idleIn(tree fs.FS) (int64, string, error) {
	least, err := meminfo(tree, "Inactive(anon)")
	if err != nil {
		return 0, "", err
	}
	from := "Inactive(anon) of /proc/meminfo"
	groups, err := counting(tree)
	if err != nil {
		return 0, "", err
	}
	for _, g := range groups {
		limits, err := limitsOf(tree, g)
		if err != nil {
			return 0, "", err
		}
		if len(limits) == 0 {
			continue
		}
		name := "inactive_anon"
		if !g.V2 {
			name = "total_inactive_anon"
		}
		stat, err := counters(tree, path.Join(g.Dir, "memory.stat"))
		if err != nil {
			return 0, "", err
		}
		n, ok := stat[name]
		if !ok || n < 0 || n == math.MaxInt64 {
			return 0, "", fmt.Errorf("/%s/memory.stat states no %s", g.Dir, name)
		}
		if n < least {
			least, from = n, fmt.Sprintf("%s of /%s/memory.stat", name, g.Dir)
		}
	}
	return least, from, nil
}
