package release

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/bmoe/bmoe/backends"
	"github.com/bmoe/bmoe/ci/console"
	"github.com/bmoe/bmoe/ci/llama"
	"github.com/bmoe/bmoe/core/manifest"
)

// stage fills dir with all that the archive holds but the program: libraries and modules, texts, and the manifest.
func (r *Release) stage(ctx context.Context, p *part, dir string) error {
	tc, err := p.toolchain(ctx)
	if err != nil {
		p.missing = err
		return nil
	}
	pin, err := llama.ReadPin(r.Root)
	if err != nil {
		return err
	}
	m := manifest.Manifest{
		System:   p.String(),
		Llama:    manifest.Llama{Release: pin.Tag, Tree: pin.Tree},
		Compiler: manifest.Compiler{C: tc.C, CXX: tc.CXX, Machine: tc.Machine, Flags: tc.Flags},
	}
	leave := func(name, why string) {
		console.Say("%s: %s is left out: %s", p, name, why)
		m.LeftOut = append(m.LeftOut, manifest.LeftOut{Name: name, Why: why})
		p.leftOut = append(p.leftOut, name+": "+why)
	}
	take := func(folder string, module backends.Module) error {
		m.Modules = append(m.Modules, manifest.Module{Name: module.Name, Options: module.Configured(p.OS)})
		if module.Name != backends.Base.Name {
			p.modules = append(p.modules, module.Name)
		}
		return copyInto(filepath.Join(folder, "bin"), dir)
	}

	all := []backends.Module{backends.Base, backends.Common}
	var cpu []backends.Module
	for _, module := range backends.CPU(p.OS, p.Arch) {
		if why := tc.Lacks(ctx, module); why != "" {
			leave(module.Name, why)
			continue
		}
		cpu = append(cpu, module)
	}
	if r.Few {
		cpu = backends.Few(cpu, backends.Host)
	}
	folders, err := llama.BuildWith(ctx, r.Root, tc, cpu)
	if err != nil {
		return err
	}
	for i, module := range append(all, cpu...) {
		if err := take(folders[i], module); err != nil {
			return err
		}
	}
	for _, a := range backends.Accelerators {
		if r.Few && a.On(p.OS) {
			leave(a.Name, "this is a rehearsal")
			continue
		}
		if why := tc.Misses(ctx, a, p.OS); why != "" {
			if a.On(p.OS) {
				leave(a.Name, why)
			}
			continue
		}
		folders, err := llama.BuildWith(ctx, r.Root, tc, []backends.Module{a.Module})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			console.Say("%v", err)
			leave(a.Name, "it does not build with what is here")
			continue
		}
		if err := take(folders[len(folders)-1], a.Module); err != nil {
			return err
		}
	}
	if err := llama.LinkNeeded(dir); err != nil {
		return err
	}
	if err := r.texts(ctx, p, dir); err != nil {
		return err
	}
	if m.Files, err = manifest.Of(dir); err != nil {
		return err
	}
	return m.Write(dir)
}

// texts are what people read, the manual page and the shells' completions among them.
func (r *Release) texts(ctx context.Context, p *part, dir string) error {
	for to, from := range map[string]string{
		"LICENSE":             "LICENSE",
		"THIRD_PARTY_NOTICES": "THIRD_PARTY_NOTICES",
		"README.md":           "packaging/README.md",
		"INSTALL.txt":         "packaging/install/" + p.OS + ".txt",
		"OWN-MODULES.md":      "docs/own-modules.md",
	} {
		if err := copyFile(filepath.Join(r.Root, filepath.FromSlash(from)), filepath.Join(dir, to), 0o644); err != nil {
			return err
		}
	}
	for to, args := range map[string][]string{
		"man/bmoe-cli.1":            {"--manual"},
		"completions/bmoe-cli.bash": {"--completion", "bash"},
		"completions/_bmoe-cli":     {"--completion", "zsh"},
		"completions/bmoe-cli.fish": {"--completion", "fish"},
		"completions/bmoe-cli.ps1":  {"--completion", "powershell"},
	} {
		out, err := r.output(ctx, filepath.Join(r.work(), program("bmoe-cli")), args...)
		if err != nil {
			return fmt.Errorf("bmoe-cli %s: %w", strings.Join(args, " "), err)
		}
		path := filepath.Join(dir, filepath.FromSlash(to))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, out, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// copyInto copies the files in a folder, which a person may run or read whatever the umask was when they were built.
func copyInto(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := copyFile(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()), 0o755); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return os.Chmod(to, mode)
}
