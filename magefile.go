//go:build mage

// The targets. Each is a few lines; what they call lives in ci/.
package main

import (
	"context"
	"path/filepath"

	"github.com/magefile/mage/mg"

	"github.com/bmoe/bmoe/backends"
	"github.com/bmoe/bmoe/ci/code"
	"github.com/bmoe/bmoe/ci/console"
	"github.com/bmoe/bmoe/ci/llama"
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
var Aliases = map[string]any{"test": Test.All}

// Builds bmoe-cli, the llama.cpp libraries and the CPU modules for this machine, together in build/bin.
func Build(ctx context.Context) error {
	mg.SerialCtxDeps(ctx, Llama.Build)
	return repo.Build(ctx, bin)
}

type Llama mg.Namespace

// Gets llama.cpp's pinned source and checks its tree id: from BMOE_LLAMA_DIR, git, or the npm package.
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

// Builds the llama.cpp libraries and this machine's CPU modules into build/bin, from the cache where they were built before.
func (Llama) Build(ctx context.Context) error {
	folders, err := llama.Build(ctx, root, backends.Few(backends.ForThisHost(), backends.Host))
	if err != nil {
		return err
	}
	return llama.Install(folders, built)
}

type Test mg.Namespace

// Checks and tests everything: lint, the cross builds and every test. Also called just test.
func (Test) All(ctx context.Context) error {
	mg.SerialCtxDeps(ctx, Build, Lint, Cross)
	return repo.Test(ctx, bin)
}

// Checks formatting, vets for every platform and runs staticcheck.
func Lint(ctx context.Context) error {
	return repo.Lint(ctx)
}

// Builds every command for linux, darwin and windows on amd64 and arm64, without a C compiler.
func Cross(ctx context.Context) error {
	return repo.Cross(ctx, filepath.Join(built, "cross"))
}
