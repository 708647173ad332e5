package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/template"

	"github.com/bmoe/bmoe/ci/console"
)

// KeyVariable names the environment variable with the key, as gpg knows it, that checksums.txt is signed with.
const KeyVariable = "BMOE_SIGNING_KEY"

// Release is one to be made in the checkout at Root; what it takes goes to build/release, what comes out to build/dist.
type Release struct {
	Root     string
	Snapshot bool     // of whatever is checked out; else of the tag that it must be
	Only     []string // systems such as linux/arm64; all if empty
	Few      bool     // a rehearsal: with a few CPU modules, and none for accelerators
}

func (r *Release) work() string { return filepath.Join(r.Root, "build", "release") }

// Dist is the folder with what is to be published.
func (r *Release) Dist() string { return filepath.Join(r.Root, "build", "dist") }

// Make builds, packs and checks.
func (r *Release) Make(ctx context.Context) error {
	if err := r.tools(ctx); err != nil {
		return err
	}
	var parts []*part
	for _, s := range systems {
		if len(r.Only) > 0 && !slices.Contains(r.Only, s.String()) {
			continue
		}
		p := &part{system: s}
		parts = append(parts, p)
		dir := filepath.Join(r.work(), s.OS+"-"+s.Arch)
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := r.stage(ctx, p, dir); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		if p.missing != nil {
			console.Say("%s: no archive: %v", s, p.missing)
			if s.OS == "android" {
				continue // Go alone does not build for it
			}
			if err := r.goAlone(ctx, s); err != nil {
				return err
			}
		}
	}
	whole := slices.DeleteFunc(slices.Clone(parts), func(p *part) bool { return p.missing != nil })
	if len(whole) == 0 {
		return errNone
	}
	if err := r.pack(ctx, whole); err != nil {
		return err
	}
	failed := r.check(whole)
	table(os.Stdout, parts)
	return failed
}

// tools builds what the release is made with.
func (r *Release) tools(ctx context.Context) error {
	if err := os.MkdirAll(r.work(), 0o755); err != nil {
		return err
	}
	console.Say("building the release's tools; goreleaser takes some minutes the first time")
	for _, build := range [][]string{
		{"-C", filepath.Join(r.Root, "ci", "release", "tools"), "build", "-o", filepath.Join(r.work(), program("goreleaser")), "github.com/goreleaser/goreleaser/v2"},
		{"-C", r.Root, "build", "-o", filepath.Join(r.work(), program("hooks")), "./ci/release/hooks"},
		{"-C", r.Root, "build", "-o", filepath.Join(r.work(), program("bmoe-cli")), "./cmd/bmoe-cli"},
	} {
		cmd := r.command(ctx, "go", append([]string{build[2], build[0], build[1]}, build[3:]...)...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("go build %s: %w", build[len(build)-1], err)
		}
	}
	return nil
}

// goAlone builds the programs for a system whose libraries are missing, which shows that nothing else is.
func (r *Release) goAlone(ctx context.Context, s system) error {
	cmd := r.command(ctx, "go", "build", "-trimpath", "-o", filepath.Join(r.work(), s.OS+"-"+s.Arch)+string(filepath.Separator), "./cmd/...")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+s.OS, "GOARCH="+s.Arch)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build for %s: %w", s, err)
	}
	return nil
}

// programs are the commands of the product.
func (r *Release) programs() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(r.Root, "cmd"))
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// pack has goreleaser build the programs and pack them with what was staged.
func (r *Release) pack(ctx context.Context, parts []*part) error {
	recipe, err := r.recipe(parts)
	if err != nil {
		return err
	}
	config := filepath.Join(r.work(), "goreleaser.yaml")
	if err := os.WriteFile(config, recipe, 0o644); err != nil {
		return err
	}
	args := []string{"release", "--config", config, "--clean", "--parallelism=1"} // the manifest is written by one at a time
	skip := []string{"publish", "announce"}
	if os.Getenv(KeyVariable) == "" {
		console.Say("checksums.txt is not signed: %s names no key", KeyVariable)
		skip = append(skip, "sign")
	}
	if r.Snapshot {
		args = append(args, "--snapshot")
	}
	cmd := r.command(ctx, filepath.Join(r.work(), program("goreleaser")), append(args, "--skip="+strings.Join(skip, ","))...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("goreleaser: %w", err)
	}
	return nil
}

// recipe is packaging/goreleaser.yaml for these systems.
func (r *Release) recipe(parts []*part) ([]byte, error) {
	path := filepath.Join(r.Root, "packaging", "goreleaser.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t, err := template.New(path).Delims("[[", "]]").Parse(string(text))
	if err != nil {
		return nil, err
	}
	programs, err := r.programs()
	if err != nil {
		return nil, err
	}
	has := func(systems ...string) bool {
		return slices.ContainsFunc(parts, func(p *part) bool { return slices.Contains(systems, p.OS) })
	}
	var targets []string
	for _, p := range parts {
		targets = append(targets, p.OS+"_"+p.Arch)
	}
	list := func(words []string) string { return "[" + strings.Join(words, ", ") + "]" }
	var out bytes.Buffer
	err = t.Execute(&out, map[string]any{
		"Programs": programs,
		"Binaries": list(programs),
		"Targets":  list(targets),
		"Stage":    "build/release", // goreleaser takes no absolute path
		"Hooks":    filepath.ToSlash(filepath.Join(r.work(), program("hooks"))),
		"Linux":    has("linux"),
		"Shared":   []string{"/usr/share/fish", "/usr/share/fish/vendor_completions.d", "/usr/share/zsh", "/usr/share/zsh/site-functions"},
		"Unix":     has("linux", "darwin"),
		"Windows":  has("windows"),
	})
	return out.Bytes(), err
}

func (r *Release) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = r.Root
	return cmd
}

func (r *Release) output(ctx context.Context, name string, args ...string) ([]byte, error) {
	out, err := r.command(ctx, name, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	return out, err
}

// program is a program's file on this machine.
func program(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}
