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
	if err := r.run(ctx, nil, "vet", "-tags=mage", "."); err != nil {
		return err
	}
	console.Say("running staticcheck")
	return errors.Join(
		r.run(ctx, pure, "tool", "staticcheck", "./..."),
		r.run(ctx, pure, "tool", "staticcheck", "-tags=mage", "."),
	)
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
