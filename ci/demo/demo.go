// Package demo shows bmoe at work on any machine: it writes a model larger than the memory it then allows the run, and runs it.
//
// It must not know how the program or its libraries are built; it is told where they are.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/bmoe/bmoe/ci/cgroup"
	"github.com/bmoe/bmoe/ci/console"
	"github.com/bmoe/bmoe/platform/storage"
	"github.com/bmoe/bmoe/tests/synth"
)

// Demo is one run.
type Demo struct {
	Program    string // bmoe-cli, its libraries beside it
	Folder     string // where the model goes
	ModelBytes int64  // how large a model, about
	Memory     int64  // bytes the run may hold
	Prompt     string
}

// New is the demo with the program in bin. Memory and size are in MiB; nil means the usual.
func New(bin, folder string, memory, size *int) Demo {
	mib := func(given *int, usual int64) int64 {
		if given == nil {
			return usual << 20
		}
		return int64(*given) << 20
	}
	return Demo{
		Program:    filepath.Join(bin, "bmoe-cli"),
		Folder:     folder,
		ModelBytes: mib(size, 3072),
		Memory:     mib(memory, 1024),
		Prompt:     "Once upon a time",
	}
}

// spare is what a disk should still have free when the model is on it.
const spare = 512 << 20

// Prepare fails early where the sizes make no sense or the disk has no room for the model.
func (d Demo) Prepare() error {
	if d.Memory <= 0 || d.ModelBytes <= 0 {
		return errors.New("the demo's memory and size are counts of MiB, above 0")
	}
	if d.Memory >= d.ModelBytes {
		return fmt.Errorf("the demo's model (%s) must be larger than the memory it is allowed (%s)", size(d.ModelBytes), size(d.Memory))
	}
	if err := os.MkdirAll(d.Folder, 0o755); err != nil {
		return err
	}
	if d.written() {
		return nil
	}
	free, err := storage.FreeSpace(d.Folder)
	if err != nil {
		return err
	}
	need, err := synth.Size(d.spec())
	if err != nil {
		return err
	}
	if free < need+spare {
		return fmt.Errorf("the demo's model takes %s in %s, where %s are free; make room, or ask for a smaller one with -size", size(need+spare), d.Folder, size(free))
	}
	return nil
}

func (d Demo) spec() synth.Spec { return synth.Sized(d.ModelBytes) }

func (d Demo) model() string {
	return filepath.Join(d.Folder, fmt.Sprintf("demo-%dM.gguf", d.ModelBytes>>20))
}

// written says whether an earlier demo left the model. A file that is there is whole, and its size says which one it is.
func (d Demo) written() bool {
	want, err := synth.Size(d.spec())
	info, statErr := os.Stat(d.model())
	return err == nil && statErr == nil && info.Size() == want
}

// Run writes the model where it is not there yet, runs the program on it, and says what that showed.
func (d Demo) Run(ctx context.Context) error {
	if err := d.write(ctx); err != nil {
		return err
	}
	if err := storage.DropCache(d.model()); err == nil {
		console.Say("the model was put out of the file cache: every expert is read from storage")
	}
	group, err := cgroup.New(cgroup.Root, fmt.Sprintf("bmoe-demo-%d", os.Getpid()), d.Memory)
	if err != nil {
		console.Say("no memory cgroup could be made (%v): bmoe-cli holds itself to the limit, and nothing enforces it", err)
	} else {
		console.Say("a memory cgroup enforces the limit: %s", group.Path())
		defer func() { _ = group.Remove() }() // an empty group that stays behind holds nothing
	}
	args := []string{"-m", d.model(), "--auto", "--memory", fmt.Sprintf("%dMiB", d.Memory>>20), "-p", d.Prompt}
	console.Say("a model of %s with %s of memory: %s %s %q", size(d.ModelBytes), size(d.Memory), d.Program, strings.Join(args[:len(args)-1], " "), d.Prompt)
	if err := d.play(ctx, group, args); err != nil {
		return err
	}
	console.Say("That was a model of %s, run with %s of memory. Its weights are random, and so is its text; speed, memory and reads are real.",
		size(d.ModelBytes), size(d.Memory))
	if peak := group.Peak(); peak > 0 {
		console.Say("The most that the cgroup held was %s, cached file pages counted.", size(peak))
	}
	console.Say("A model of your own: %s -m MODEL.gguf --auto -p \"...\"; what the demo wrote goes with: go tool mage clean", d.Program)
	return nil
}

func (d Demo) write(ctx context.Context) error {
	if d.written() {
		console.Say("the demo's model is there from before: %s", d.model())
		return nil
	}
	if err := os.Remove(d.model()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	total, err := synth.Size(d.spec())
	if err != nil {
		return err
	}
	bar := console.Start("writing a model of random weights", total, true)
	if _, err := synth.Write(ctx, d.model(), d.spec(), func(written, _ int64) { bar.Set(written) }); err != nil {
		bar.Failed()
		return err
	}
	bar.Done()
	return nil
}

// play runs the program, its own bars and text going straight to the person. Interrupted, it is given the time to report.
func (d Demo) play(ctx context.Context, group *cgroup.Group, args []string) error {
	cmd := group.Command(ctx, d.Program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() < 0 {
		return fmt.Errorf("bmoe-cli was ended by the system (%v); with a limit of %s that may be for memory: try -memory with more", err, size(d.Memory))
	}
	if err != nil {
		return fmt.Errorf("bmoe-cli: %w", err)
	}
	return nil
}

// size is a count of bytes for people.
func size(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
