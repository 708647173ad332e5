// Package cgroup runs programs in a memory control group of Linux, so that a limit on what they may hold is real.
//
// It must not know what the programs are. Cached file pages count in a group, too, so a file that a program reads through
// the cache takes part of its limit.
package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Root is where Linux shows its control groups.
const Root = "/sys/fs/cgroup"

// Group is a memory control group.
type Group struct {
	path string
	peak string // the file that tells the most it held
	ends string // the file that counts the processes it ended for want of memory
}

// New makes a control group of a name below root that may hold limit bytes, of whichever version the system has. That takes
// rights: where they are missing, or where there are no control groups, the error says so.
func New(root, name string, limit int64) (*Group, error) {
	v1 := filepath.Join(root, "memory")
	if exists(filepath.Join(v1, "cgroup.procs")) {
		return create(filepath.Join(v1, name), limit, "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", limit, "memory.max_usage_in_bytes", "memory.oom_control")
	}
	controllers, err := os.ReadFile(filepath.Join(root, "cgroup.subtree_control"))
	if err != nil {
		return nil, errors.New("this system shows no control groups")
	}
	if !strings.Contains(" "+strings.TrimSpace(string(controllers))+" ", " memory ") {
		return nil, fmt.Errorf("the memory controller is not passed on in %s", root)
	}
	return create(filepath.Join(root, name), limit, "memory.max", "memory.swap.max", 0, "memory.peak", "memory.events")
}

// create makes the group's folder. Swap would let a program hold more than the limit: version 1 counts memory and swap
// together, version 2 swap alone. Where the swap file is not offered, swap isn't counted and the limit on memory holds.
func create(path string, limit int64, limitFile, swapFile string, swap int64, peakFile, endsFile string) (*Group, error) {
	if err := os.Mkdir(path, 0o755); err != nil {
		return nil, err
	}
	g := &Group{path: path, peak: filepath.Join(path, peakFile), ends: filepath.Join(path, endsFile)}
	if err := os.WriteFile(filepath.Join(path, limitFile), []byte(strconv.FormatInt(limit, 10)), 0o644); err != nil {
		return nil, errors.Join(err, g.Remove())
	}
	if file := filepath.Join(path, swapFile); exists(file) {
		_ = os.WriteFile(file, []byte(strconv.FormatInt(swap, 10)), 0o644)
	}
	return g, nil
}

// Command is a program that starts inside the group, or outside of any if g is nil. A shell moves itself in and becomes the
// program, so that not one page of it is counted elsewhere.
func (g *Group) Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	if g == nil {
		return exec.CommandContext(ctx, program, args...)
	}
	enter := `echo $$ > "$0" && exec "$@"`
	return exec.CommandContext(ctx, "sh", append([]string{"-c", enter, filepath.Join(g.path, "cgroup.procs"), program}, args...)...)
}

// Path is the group's folder.
func (g *Group) Path() string { return g.path }

// Peak is the most bytes that the group held, cached file pages counted; 0 where the system does not say, or g is nil.
func (g *Group) Peak() int64 {
	if g == nil {
		return 0
	}
	data, err := os.ReadFile(g.peak)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Ended is how many processes of the group the system ended for want of memory; 0 where it does not say, or g is nil. Source:
// oom_kill in memory.oom_control (version 1) and memory.events (version 2), cgroup-v1/memory.rst and cgroup-v2.rst.
func (g *Group) Ended() int64 {
	if g == nil {
		return 0
	}
	data, err := os.ReadFile(g.ends)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(count), 10, 64)
			if err == nil {
				return n
			}
		}
	}
	return 0
}

// Remove takes the group away; its files go with it. A process that has just ended may still count as inside for a moment.
func (g *Group) Remove() error {
	var err error
	for range 20 {
		if err = os.Remove(g.path); err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
