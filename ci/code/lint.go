package code

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmoe/bmoe/ci/console"
)

// Lint checks the layout of every source file, vets the code for every platform, and runs staticcheck for this one.
func (r Repo) Lint(ctx context.Context) error {
	console.Say("checking gofmt")
	if err := r.formatted(); err != nil {
		return err
	}
	for _, p := range Platforms {
		console.Say("vetting for %s", p)
		if err := r.run(ctx, p.env(), "vet", "./..."); err != nil {
			return fmt.Errorf("for %s: %w", p, err)
		}
	}
	for _, p := range phones {
		if err := r.vetPhone(ctx, p); err != nil {
			return err
		}
	}
	if err := r.run(ctx, nil, "vet", "-tags=mage", "."); err != nil {
		return err
	}
	console.Say("running staticcheck")
	return errors.Join(
		r.run(ctx, pure, "tool", "staticcheck", "./..."),
		r.run(ctx, pure, "tool", "staticcheck", "-tags=mage", "."),
	)
}

// phones are the systems whose C compilers are not to be had everywhere. With purego a package needs one there; every other
// package is vetted here.
var phones = []Platform{{"android", "arm64"}, {"ios", "arm64"}}

// vetPhone says that C is at hand, since a test of iOS is not even listed without it, and leaves out the two parts of the
// standard library that would use it: nothing is compiled as C.
func (r Repo) vetPhone(ctx context.Context, p Platform) error {
	env := []string{"GOOS=" + p.OS, "GOARCH=" + p.Arch, "CGO_ENABLED=1", "GOFLAGS=-tags=netgo,osusergo"}
	packages, err := r.withoutC(ctx, env)
	if err != nil {
		return fmt.Errorf("for %s: %w", p, err)
	}
	console.Say("vetting %d packages for %s", len(packages), p)
	if err := r.run(ctx, env, append([]string{"vet"}, packages...)...); err != nil {
		return fmt.Errorf("for %s: %w", p, err)
	}
	return nil
}

// withoutC lists the packages that have neither purego nor C in them, their tests included.
func (r Repo) withoutC(ctx context.Context, env []string) ([]string, error) {
	lines, err := r.lines(ctx, env, "list", "-e", "-test", "-f", `{{with .ForTest}}{{.}}{{else}}{{.ImportPath}}{{end}}={{join .Deps ","}}`, "./...")
	if err != nil {
		return nil, err
	}
	return pureGo(lines), nil
}

// pureGo reads lines of the form PACKAGE=DEPENDENCY,DEPENDENCY, where a package may have several, those of its tests among them.
// The program that runs a package's tests is left out, since vet does not build it; any other program needs C on iOS.
func pureGo(lines []string) []string {
	needs := map[string]bool{}
	for _, line := range lines {
		name, deps, _ := strings.Cut(line, "=")
		if !strings.HasSuffix(name, ".test") {
			needs[name] = needs[name] || has(deps, "github.com/ebitengine/purego") || has(deps, "runtime/cgo")
		}
	}
	var packages []string
	for name, does := range needs {
		if !does {
			packages = append(packages, name)
		}
	}
	slices.Sort(packages)
	return packages
}

// formatted fails with the names of the files that gofmt would change.
func (r Repo) formatted() error {
	var wrong []string
	err := filepath.WalkDir(r.Root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if foreign(d.Name()) && path != r.Root {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		want, err := format.Source(src)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if !bytes.Equal(src, want) {
			rel, _ := filepath.Rel(r.Root, path)
			wrong = append(wrong, rel)
		}
		return nil
	})
	if err == nil && len(wrong) > 0 {
		err = fmt.Errorf("gofmt would change these files; run gofmt -w on them:\n  %s", strings.Join(wrong, "\n  "))
	}
	return err
}

// foreign folders hold no code of ours: what was built, llama.cpp's source, and what tools hide.
func foreign(name string) bool {
	return name == "build" || name == "llama.cpp" || name == "testdata" || strings.HasPrefix(name, ".")
}
