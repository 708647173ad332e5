package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// cgroups is where Linux shows its control groups.
const cgroups = "/sys/fs/cgroup"

// group is a memory control group. The nil group is none.
type group struct {
	path     string
	peakFile string
}

// confine makes a control group below root that may hold limit bytes, of whichever version the system has. That takes rights:
// where they are missing, or where there are no control groups, the error says so.
func confine(root string, limit int64) (*group, error) {
	name := fmt.Sprintf("bmoe-demo-%d", os.Getpid())
	v1 := filepath.Join(root, "memory")
	if exists(filepath.Join(v1, "cgroup.procs")) {
		return create(filepath.Join(v1, name), limit, "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max_usage_in_bytes")
	}
	controllers, err := os.ReadFile(filepath.Join(root, "cgroup.subtree_control"))
	if err != nil {
		return nil, errors.New("this system shows no control groups")
	}
	if !strings.Contains(" "+strings.TrimSpace(string(controllers))+" ", " memory ") {
		return nil, fmt.Errorf("the memory controller is not passed on in %s", root)
	}
	return create(filepath.Join(root, name), limit, "memory.max", "memory.swap.max", "memory.peak")
}

func create(path string, limit int64, limitFile, swapFile, peakFile string) (*group, error) {
	if err := os.Mkdir(path, 0o755); err != nil {
		return nil, err
	}
	g := &group{path: path, peakFile: filepath.Join(path, peakFile)}
	if err := os.WriteFile(filepath.Join(path, limitFile), []byte(strconv.FormatInt(limit, 10)), 0o644); err != nil {
		g.remove()
		return nil, err
	}
	// Swap would let the run hold more than the limit. Version 1 counts memory and swap together, version 2 swap alone; where
	// the file is not offered swap isn't counted, and the limit on memory still holds.
	swap := "0"
	if swapFile == "memory.memsw.limit_in_bytes" {
		swap = strconv.FormatInt(limit, 10)
	}
	if file := filepath.Join(path, swapFile); exists(file) {
		_ = os.WriteFile(file, []byte(swap), 0o644)
	}
	return g, nil
}

// command is a program that starts inside the group. A shell moves itself in and becomes the program, so that not one page of
// it is counted elsewhere.
func (g *group) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	if g == nil {
		return exec.CommandContext(ctx, program, args...)
	}
	enter := `echo $$ > "$0" && exec "$@"`
	return exec.CommandContext(ctx, "sh", append([]string{"-c", enter, filepath.Join(g.path, "cgroup.procs"), program}, args...)...)
}

// peak is the most bytes that the group held, 0 where the system does not say.
func (g *group) peak() int64 {
	if g == nil {
		return 0
	}
	data, err := os.ReadFile(g.peakFile)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// remove takes the group away; its files go with it.
func (g *group) remove() { _ = os.Remove(g.path) }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
