package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/bmoe/bmoe/core/llama"
	"github.com/bmoe/bmoe/core/machine"
)

// ChildList is the hidden mode in which this program loads one compute module and lists its devices: its argument is the
// name of the module's file, and it prints a listing as one line of JSON.
const ChildList = "--probe-list"

// Listing is what a compute module beside the executable says it has.
type Listing struct {
	Module  string   `json:"module"` // the name of its file
	Name    string   `json:"name"`   // of its backend: "vulkan"
	Devices []Listed `json:"devices"`
	Why     string   `json:"why,omitempty"` // it does not load, in the child's words

	Failed error `json:"-"` // why nothing of it is used, with its file; nil: it was loaded and listed its devices
}

// Listed is a device as its module describes it.
type Listed struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Integrated  bool   `json:"integrated"` // it says that its memory is the host's
	Free        int64  `json:"free"`       // bytes; 0: not stated
	Total       int64  `json:"total"`      // likewise
}

// Finder finds what computes beside the host's cores. Load opens the libraries beside the executable. Again starts this
// program again: a module is only as sound as the driver under it, and what a driver does to a process is done to a child.
// nil: no child can be started, and everything is tried in this process.
type Finder struct {
	Load  func() (*llama.Library, error)
	Again Again
}

// List loads every module beside the executable that is not the CPU's, each in a child of its own, and lists its devices. The
// error is ctx's, or says why none could be looked for.
func (f Finder) List(ctx context.Context) ([]Listing, error) {
	lib, err := f.Load()
	if err != nil {
		return nil, err
	}
	modules, err := lib.Accelerators()
	if err != nil {
		return nil, err
	}
	var all []Listing
	names := map[string]string{}
	for _, m := range modules {
		file := filepath.Base(m.Path)
		l, err := f.list(ctx, file)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		l.Module, l.Name, l.Failed = file, m.Name, err
		for _, d := range l.Devices {
			// Whoever names a device by its name could mean either: the first module keeps it.
			if by, taken := names[d.Name]; taken && l.Failed == nil {
				l.Failed = fmt.Errorf("%s lists a device %s, and so does %s: one of the two modules must go", file, d.Name, by)
			}
		}
		if l.Failed != nil {
			l.Devices = nil
		}
		for _, d := range l.Devices {
			names[d.Name] = file
		}
		all = append(all, l)
	}
	return all, nil
}

// list asks one module.
func (f Finder) list(ctx context.Context, file string) (Listing, error) {
	if f.Again == nil {
		return f.load(file)
	}
	out, ended := f.Again(ctx, ChildList, file)
	l, err := lastAnswer(out, func(l Listing) error {
		if l.Module != file {
			return fmt.Errorf("it answered for another module, %q", l.Module)
		}
		p := machine.Profile{}
		for _, d := range l.Devices {
			p.Devices = append(p.Devices, machine.Device{Name: d.Name})
		}
		return p.Check()
	})
	switch {
	case ended != nil:
		return Listing{}, fmt.Errorf("listing the devices of %s ended the process that did it: %w", file, ended)
	case err != nil:
		return Listing{}, fmt.Errorf("listing the devices of %s: %w", file, err)
	}
	l = machine.Scrub(l)
	if l.Why != "" {
		return Listing{}, errors.New(l.Why)
	}
	return l, nil
}

// load loads one module in this process, and lists it.
func (f Finder) load(file string) (Listing, error) {
	lib, err := f.Load()
	if err != nil {
		return Listing{}, err
	}
	found, m, err := load(lib, file)
	if err != nil {
		return Listing{}, err
	}
	l := Listing{Module: file, Name: m.Name, Devices: []Listed{}}
	for _, d := range found {
		l.Devices = append(l.Devices, Listed{d.Name, d.Description, d.Type == llama.DeviceIGPU, d.Free, d.Total})
	}
	return l, nil
}

// load registers the module of a file beside the executable, once in a process.
func load(lib *llama.Library, file string) ([]llama.Listed, llama.Module, error) {
	modules, err := lib.Accelerators()
	if err != nil {
		return nil, llama.Module{}, err
	}
	at := slices.IndexFunc(modules, func(m llama.Module) bool { return filepath.Base(m.Path) == file })
	if at < 0 {
		return nil, llama.Module{}, fmt.Errorf("%s is no compute module beside this program", file)
	}
	found, err := lib.LoadAccelerator(modules[at])
	return found, modules[at], err
}

// listChild is the side of the child.
func listChild(file string, out io.Writer) error {
	l, err := Finder{Load: mortal}.load(file)
	if err != nil {
		l = Listing{Module: file, Devices: []Listed{}, Why: err.Error()}
	}
	return say(out, l)
}

// say prints an answer on a line of its own, whatever a driver printed before it.
func say(out io.Writer, answer any) error {
	line, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\n%s\n", line)
	return err
}

// mortal opens the libraries beside the executable in a child that ends with a line on what llama.cpp can't go on for.
func mortal() (*llama.Library, error) {
	lib, err := beside()
	if err != nil {
		return nil, err
	}
	return lib, lib.OnFatal(func(said string) {
		fmt.Fprintln(os.Stderr, "llama.cpp can't go on: "+said)
		os.Exit(1)
	})
}
