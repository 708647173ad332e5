package main

import (
	"fmt"
	"runtime/debug"

	"github.com/bmoe/bmoe/core/engine"
	"github.com/bmoe/bmoe/core/llama"
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
	// version says which release and which CPU variant is in use.
	version() (string, error)
	// devices lists what llama.cpp finds, and the modules beside this program that do not load.
	devices() (found []llama.Listed, failed []error, err error)
}

// nativeLibrary asks the libraries beside this program.
type nativeLibrary struct{}

func (nativeLibrary) version() (string, error) {
	l, err := engine.Libraries()
	if err != nil {
		return "", err
	}
	return l.Version(), nil
}

func (nativeLibrary) devices() ([]llama.Listed, []error, error) {
	l, err := engine.Libraries()
	if err != nil {
		return nil, nil, err
	}
	failed := l.LoadAccelerators()
	return l.Devices(), failed, nil
}

// version prints what this program is and stands on.
func (p *program) version() error {
	fmt.Fprintln(p.out, version())
	native, err := p.natives.version()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.out, native)
	return err
}

// listDevices prints a line for each device: name, memory, description.
func (p *program) listDevices() error {
	found, failed, err := p.natives.devices()
	if err != nil {
		return err
	}
	for _, err := range failed {
		p.fail(err)
	}
	for _, d := range found {
		memory := "memory not stated"
		if d.Total > 0 {
			memory = fmt.Sprintf("%d of %d MiB free", d.Free>>20, d.Total>>20)
		}
		if _, err := fmt.Fprintf(p.out, "%s\t%s\t%s\n", d.Name, memory, d.Description); err != nil {
			return err
		}
	}
	return nil
}
