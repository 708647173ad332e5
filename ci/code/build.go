package code

import (
	"context"
	"path/filepath"

	"github.com/bmoe/bmoe/ci/console"
)

// pure keeps the C compiler out: the product is Go alone, and what it loads at run time is found beside it.
var pure = []string{"CGO_ENABLED=0"}

// Build puts the product's programs into dir.
func (r Repo) Build(ctx context.Context, dir string) error {
	commands, err := r.commands(ctx)
	if err != nil || len(commands) == 0 {
		return err
	}
	return r.run(ctx, pure, append([]string{"build", "-trimpath", "-o", dir + string(filepath.Separator)}, commands...)...)
}

// Platform is a system that the product is built for.
type Platform struct{ OS, Arch string }

// Platforms are those that every change must build for.
var Platforms = []Platform{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

func (p Platform) String() string { return p.OS + "/" + p.Arch }

func (p Platform) env() []string {
	return append([]string{"GOOS=" + p.OS, "GOARCH=" + p.Arch}, pure...)
}

// Cross builds every program for every platform, each into its own folder under dir.
func (r Repo) Cross(ctx context.Context, dir string) error {
	commands, err := r.commands(ctx)
	if err != nil || len(commands) == 0 {
		return err
	}
	for _, p := range Platforms {
		console.Say("building for %s", p)
		into := filepath.Join(dir, p.OS+"-"+p.Arch) + string(filepath.Separator)
		if err := r.run(ctx, p.env(), append([]string{"build", "-trimpath", "-o", into}, commands...)...); err != nil {
			return err
		}
	}
	return nil
}
