package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/bmoe/bmoe/core/engine"
	"github.com/bmoe/bmoe/core/llama"
	"github.com/bmoe/bmoe/core/manifest"
	"github.com/bmoe/bmoe/core/params"
	"github.com/bmoe/bmoe/core/probe"
	"github.com/bmoe/bmoe/platform/process"
)

// release is set by the build: -ldflags "-X main.release=v1.2.3".
var release string

// version names this program and its release, or the commit it was built from.
func version() string {
	v := release
	if info, ok := debug.ReadBuildInfo(); ok && v == "" {
		v = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v += " " + s.Value
			}
		}
	}
	return "bmoe-cli " + v
}

// natives is what llama.cpp's libraries say of themselves.
type natives interface {
	// folder is where the libraries must be.
	folder() (string, error)
	// version says which release and which CPU variant is in use.
	version() (string, error)
	// devices lists the host's own, and what each module beside this program has.
	devices(ctx context.Context, set *params.Set) (host []llama.Listed, modules []probe.Listing, err error)
}

// nativeLibrary asks the libraries beside this program.
type nativeLibrary struct{}

func (nativeLibrary) folder() (string, error) {
	exe, err := process.Executable()
	return filepath.Dir(exe), err
}

func (nativeLibrary) version() (string, error) {
	l, err := engine.Libraries()
	if err != nil {
		return "", err
	}
	return l.Version(), nil
}

func (nativeLibrary) devices(ctx context.Context, set *params.Set) ([]llama.Listed, []probe.Listing, error) {
	l, err := engine.Libraries()
	if err != nil {
		return nil, nil, err
	}
	host := l.Devices() // before any module is loaded into this process, which --no-isolated-probes does
	modules, err := probe.Finder{Load: engine.Libraries, Again: again(set)}.List(ctx)
	return host, modules, err
}

// again starts this program again for a probe, unless a person wants none of that.
func again(set *params.Set) probe.Again {
	if !set.Bool("isolated-probes") {
		return nil
	}
	return probe.Isolated(set.Duration("probe-limit"))
}

// version prints what this program is and stands on; with all, what the release was made of too, and whether its files are
// as they were. The files are looked at before any of them is loaded.
func (p *program) version(all bool) error {
	fmt.Fprintln(p.out, version())
	var damaged error
	if all {
		text, err := p.release()
		fmt.Fprint(p.out, text)
		damaged = err
	}
	native, err := p.natives.version()
	if err != nil {
		return errors.Join(damaged, err)
	}
	_, err = fmt.Fprintln(p.out, native)
	return errors.Join(damaged, err)
}

// release tells what the manifest beside this program says. The error names each file that is not as it was released.
func (p *program) release() (string, error) {
	dir, err := p.natives.folder()
	if err != nil {
		return "", err
	}
	m, err := manifest.Read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("no release: there is no %s in %s\n", manifest.Name, dir), nil
	}
	if err != nil {
		return "", err
	}
	found, err := m.Check(dir)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "release %s for %s, in %s\n", m.Version, m.System, dir)
	fmt.Fprintf(&b, "llama.cpp %s, tree %s\n", m.Llama.Release, m.Llama.Tree)
	fmt.Fprintf(&b, "built by %s for %s, with flags %s\n", m.Compiler.CXX, m.Compiler.Machine, m.Compiler.Flags)
	for _, module := range m.Modules {
		fmt.Fprintf(&b, "  %s: %s\n", module.Name, strings.Join(module.Options, " "))
	}
	for _, l := range m.LeftOut {
		fmt.Fprintf(&b, "left out: %s: %s\n", l.Name, l.Why)
	}
	for _, name := range found.Extra {
		fmt.Fprintf(&b, "not of the release: %s\n", name)
	}
	if !found.Whole() {
		var wrong []string
		for _, name := range found.Changed {
			wrong = append(wrong, name+" is changed")
		}
		for _, name := range found.Missing {
			wrong = append(wrong, name+" is missing")
		}
		return b.String(), fmt.Errorf("not as it was released: %s; unpack the archive again", strings.Join(wrong, ", "))
	}
	fmt.Fprintf(&b, "all %d files are as they were released\n", len(m.Files))
	return b.String(), nil
}

// listDevices prints a line for each device: name, memory, description. A module of which nothing is used has its line on
// standard error.
func (p *program) listDevices(ctx context.Context, set *params.Set) error {
	host, modules, err := p.natives.devices(ctx, set)
	if err != nil {
		return err
	}
	var lines strings.Builder
	line := func(name, description string, free, total int64) {
		memory := "memory not stated"
		if total > 0 {
			memory = fmt.Sprintf("%d of %d MiB free", free>>20, total>>20)
		}
		fmt.Fprintf(&lines, "%s\t%s\t%s\n", name, memory, description)
	}
	for _, d := range host {
		line(d.Name, d.Description, d.Free, d.Total)
	}
	for _, m := range modules {
		if m.Failed != nil {
			p.fail(m.Failed)
		}
		for _, d := range m.Devices {
			line(d.Name, d.Description, d.Free, d.Total)
		}
	}
	_, err = fmt.Fprint(p.out, lines.String())
	return err
}
