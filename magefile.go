//go:build mage

// bmoe: what can be built, tested and shown. Each target is a few lines; what they call lives in ci/.
package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/magefile/mage/mg"

	"github.com/bmoe/bmoe/backends"
	"github.com/bmoe/bmoe/ci/bench"
	"github.com/bmoe/bmoe/ci/code"
	"github.com/bmoe/bmoe/ci/console"
	"github.com/bmoe/bmoe/ci/demo"
	"github.com/bmoe/bmoe/ci/foreign"
	"github.com/bmoe/bmoe/ci/llama"
	"github.com/bmoe/bmoe/ci/notices"
	"github.com/bmoe/bmoe/ci/release"
	"github.com/bmoe/bmoe/ci/tools"
)

// Mage runs in the checkout's top folder.
var (
	root, _ = filepath.Abs(".")
	repo    = code.Repo{Root: root}
	built   = filepath.Join(root, "build")
	bin     = filepath.Join(built, "bin")
)

// Default is what mage does when no target is named.
var Default = Build

// Aliases are second names for targets.
var Aliases = map[string]any{"test": Test.All, "bench": Bench.Engine}

// Builds bmoe-cli, the llama.cpp libraries and this machine's CPU modules, together in build/bin.
func Build(ctx context.Context) error {
	mg.SerialCtxDeps(ctx, Llama.Build)
	return repo.Build(ctx, bin)
}

// Writes a model larger than the memory it then allows, and runs bmoe-cli on it.
func Demo(ctx context.Context,
	memory *int, // MiB that the run may hold; 1024 if not given
	size *int, // MiB that the model has; 3072 if not given
) error {
	d := demo.New(bin, filepath.Join(built, "demo"), memory, size)
	if err := tools.Need(tools.CMake, tools.Ninja, tools.C, tools.CXX, tools.Git); err != nil {
		return err
	}
	if err := d.Prepare(); err != nil {
		return err
	}
	mg.SerialCtxDeps(ctx, Build)
	return d.Run(ctx)
}

type Bench mg.Namespace

// Measures speed, reads and memory against what is promised, and writes docs/benchmarks.md: 15 minutes, 11 GB of disk.
func (Bench) Engine(ctx context.Context,
	model *string, // model file to measure; a calibrated one of 8 GB if not given
	only *string, // letters of the checks to make, such as A,C; all if not given
	rounds *int, // how often everything is measured; 5 if not given
	memory *int, // MiB that the confined runs may hold; 3072 if not given
	strict *bool, // fail when a target is missed
) error {
	mg.SerialCtxDeps(ctx, Build)
	args := []string{"-folder", filepath.Join(built, "bench"), "-page", filepath.Join(root, "docs", "benchmarks.md")}
	args = given(args, "model", model)
	args = given(args, "only", only)
	args = given(args, "rounds", rounds)
	args = given(args, "memory", memory)
	args = given(args, "strict", strict)
	return bench.Run(ctx, root, bin, "./tests/bench", args...)
}

// Measures what --auto alone reaches in 2, 3, 4, 6 and 12 GiB against the best by hand, and writes docs/bench-auto.md: 40 minutes.
func (Bench) Auto(ctx context.Context,
	model *string, // model file to run; a calibrated one of 8 GB if not given
	memory *string, // MiB of the control groups, such as 2048,4096; all five if not given
	rounds *int, // how often everything is measured; 3 if not given
	strict *bool, // fail when a target is missed
) error {
	mg.SerialCtxDeps(ctx, Build)
	args := []string{"-folder", filepath.Join(built, "bench"), "-page", filepath.Join(root, "docs", "bench-auto.md")}
	args = given(args, "model", model)
	args = given(args, "memory", memory)
	args = given(args, "rounds", rounds)
	args = given(args, "strict", strict)
	return bench.Run(ctx, root, bin, "./tests/bench/auto", args...)
}

// given passes a flag on if it was given.
func given[T any](args []string, name string, value *T) []string {
	if value == nil {
		return args
	}
	return append(args, fmt.Sprintf("-%s=%v", name, *value))
}

// Checks formatting and notices, vets for every platform and runs staticcheck.
func Lint(ctx context.Context) error {
	mg.SerialCtxDeps(ctx, Llama.Build)
	if err := repo.Lint(ctx); err != nil {
		return err
	}
	return notices.Check(ctx, root, built)
}

// Builds every command for linux, darwin and windows on amd64 and arm64, without a C compiler.
func Cross(ctx context.Context) error {
	return repo.Cross(ctx, filepath.Join(built, "cross"))
}

// Brings THIRD_PARTY_NOTICES up to date with what the programs contain.
func Notices(ctx context.Context) error {
	mg.SerialCtxDeps(ctx, Llama.Build)
	return notices.Write(ctx, root, built)
}

// Removes what the other targets wrote: build/, the demo's model with it, and llama.cpp's source.
func Clean(ctx context.Context,
	cache *bool, // the cache outside the checkout too, which other checkouts use
) error {
	return llama.Clean(root, built, cache != nil && *cache)
}

type Llama mg.Namespace

// Gets llama.cpp's pinned source, from BMOE_LLAMA_DIR, git or the npm package, and checks its tree id.
func (Llama) Source(ctx context.Context) error {
	pin, err := llama.ReadPin(root)
	if err != nil {
		return err
	}
	dir, err := llama.Source(ctx, root, pin)
	if err == nil {
		console.Say("llama.cpp %s is in %s, tree %s", pin.Tag, dir, pin.Tree)
	}
	return err
}

// Builds the llama.cpp libraries and this machine's CPU modules, or takes them from the cache.
func (Llama) Build(ctx context.Context) error {
	folders, err := llama.Build(ctx, root, backends.Few(backends.ForThisHost(), backends.Host))
	if err != nil {
		return err
	}
	return llama.Install(folders, built)
}

// Moves the pin to another llama.cpp release, builds on it, checks every layout and runs the gates, and says what moved.
func (Llama) Bump(ctx context.Context,
	tag string, // of the release, such as v0.5.0
	npm *string, // the npm package that has it, where git cannot reach it: node-llama-cpp@3.22.1
) error {
	if npm == nil {
		npm = new(string)
	}
	moved, err := llama.Bump(ctx, root, tag, *npm)
	if err != nil {
		return err
	}
	mg.SerialCtxDeps(ctx, Build)
	err = errors.Join(
		repo.Native(ctx, bin, nil, "-count=1", "-run=TestLayout|TestCallsMatchTheHeaders|TestEveryStructIsMirrored", "./core/llama"),
		repo.Native(ctx, bin, nil, "-count=1", "./tests/gates"),
	)
	console.Say("llama.cpp is %s; %d things moved since the release before", tag, len(moved))
	for _, m := range moved {
		console.Say("  %s", m)
	}
	return err
}

type Test mg.Namespace

// Everything a change must pass: build, lint, the cross builds and every test. The same as plain test.
func (Test) All(ctx context.Context) error {
	mg.SerialCtxDeps(ctx, Build, Lint, Cross)
	return repo.Test(ctx, bin)
}

// The long gates: every logit of a streamed run against the plain one, over a pairwise cover of all settings.
func (Test) Gates(ctx context.Context) error {
	mg.SerialCtxDeps(ctx, Build)
	return repo.Native(ctx, bin, []string{"BMOE_GATES=all"}, "-v", "-timeout=6h", "./tests/gates")
}

// The tests of the Windows program, in Wine, with libraries that mingw made.
func (Test) Windows(ctx context.Context) error {
	return foreign.Windows(root).Test(ctx)
}

// The tests of the linux/arm64 program, in QEMU.
func (Test) ARM64(ctx context.Context) error {
	return foreign.ARM64(root).Test(ctx)
}

type Release mg.Namespace

// Archives and packages of the tag that is checked out, for every system whose libraries can be built here. The same as plain release.
func (Release) Tag(ctx context.Context,
	only *string, // systems, such as linux/amd64,linux/arm64; all if not given
) error {
	r := release.Release{Root: root, Only: words(only)}
	return r.Make(ctx)
}

// The same of whatever is checked out, tagged or not.
func (Release) Snapshot(ctx context.Context,
	only *string, // systems, such as linux/amd64,linux/arm64; all if not given
	few *bool, // a rehearsal: this machine's CPU modules alone, and none for accelerators
) error {
	r := release.Release{Root: root, Only: words(only), Snapshot: true, Few: few != nil && *few}
	return r.Make(ctx)
}

// Looks into the archives in build/dist: what is in them, what that needs from outside, and how large they are.
func (Release) Check() error {
	r := release.Release{Root: root}
	return r.Check()
}

// Runs the archive in a bare Debian as an ordinary user, and installs, upgrades and removes its packages. Linux, as root.
func (Release) Try(ctx context.Context) error {
	r := release.Release{Root: root}
	return r.Try(ctx)
}

// words are those of a list with commas, none if it was not given.
func words(list *string) []string {
	if list == nil {
		return nil
	}
	return strings.Split(*list, ",")
}
