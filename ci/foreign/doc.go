// Package foreign runs another system's tests on this one: those of Windows through Wine, those of linux/arm64 through QEMU.
// It has that system's libraries built, and sets up what runs its programs.
//
// It must not know what a test is about.
package foreign

import (
	"context"
	"path/filepath"

	"github.com/bmoe/bmoe/backends"
	"github.com/bmoe/bmoe/ci/code"
	"github.com/bmoe/bmoe/ci/llama"
)

// System is one whose programs can be run here.
type System struct {
	Root string // of the checkout
	code.Platform

	// has says what the processor offers that runs the programs here.
	has func(feature string) bool
	// start readies what runs them, and stop ends it.
	start func(ctx context.Context, s *System) (how code.Foreign, stop func(), err error)
}

// folder is where all that belongs to the system lies: bin/, include/ and licenses/, as in build/ for this one.
func (s *System) folder() string { return filepath.Join(s.Root, "build", s.OS+"-"+s.Arch) }

// Test builds the system's libraries, the program and its tests, and runs these packages' tests.
func (s *System) Test(ctx context.Context, flags ...string) error {
	tc, err := llama.For(ctx, s.OS, s.Arch)
	if err != nil {
		return err
	}
	folders, err := llama.BuildWith(ctx, s.Root, tc, backends.Few(backends.CPU(s.OS, s.Arch), s.has))
	if err != nil {
		return err
	}
	if err := llama.Install(folders, s.folder()); err != nil {
		return err
	}
	how, stop, err := s.start(ctx, s)
	if err != nil {
		return err
	}
	defer stop()
	how.Platform, how.Bin = s.Platform, filepath.Join(s.folder(), "bin")
	return code.Repo{Root: s.Root}.TestForeign(ctx, how, flags...)
}
