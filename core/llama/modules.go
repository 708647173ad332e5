package llama

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ebitengine/purego"

	"github.com/bmoe/bmoe/platform/dynlib"
)

// Module is a compute backend's library beside the executable.
type Module struct {
	Name  string // "cpu-haswell", "vulkan"
	Path  string
	Score int // ggml_backend_score: higher suits this machine better, 0 can't run on it
}

// modules lists the files in dir that are named like a ggml backend, sorted by name: "ggml-" and the backend's name.
// libggml and libggml-base are no backends.
func modules(dir string) ([]Module, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("look for compute modules: %w", err)
	}
	var list []Module
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), dynlib.Prefix+"ggml-")
		if !ok || e.IsDir() {
			continue
		}
		name, ok = strings.CutSuffix(name, dynlib.Suffix)
		if !ok || name == "base" {
			continue
		}
		list = append(list, Module{Name: name, Path: filepath.Join(dir, e.Name())})
	}
	return list, nil
}

// isCPU tells a variant of the CPU backend: "cpu" or "cpu-haswell".
func (m Module) isCPU() bool { return m.Name == "cpu" || strings.HasPrefix(m.Name, "cpu-") }

// loadCPU asks every CPU variant in the directory for its score and registers the best alone, or the next best where that
// one turns out not to work. Each is opened with its symbols to itself, since all variants export the same ones.
func (l *Library) loadCPU() error {
	all, err := modules(l.Dir)
	if err != nil {
		return err
	}
	var usable []Module
	seen := 0
	for _, m := range all {
		if !m.isCPU() {
			continue
		}
		seen++
		if m.Score, err = score(m.Path); err != nil {
			leftOut(m, err)
			continue
		}
		slog.Debug("CPU variant", "module", m.Name, "score", m.Score)
		if m.Score > 0 {
			usable = append(usable, m)
		}
	}
	slices.SortStableFunc(usable, func(a, b Module) int { return b.Score - a.Score })
	for _, m := range usable {
		if _, err := l.register(m); err != nil {
			leftOut(m, err)
			continue
		}
		l.CPU = m
		return l.bindCPU()
	}
	if seen > 0 {
		return fmt.Errorf("none of the CPU modules in %s (%d) runs on this processor; build one with `go tool mage build`", l.Dir, seen)
	}
	return fmt.Errorf("%w: no CPU module (%s) is in %s; unpack the whole archive and keep its files together", ErrMissing, dynlib.Name("ggml-cpu-*"), l.Dir)
}

// score is the module's ggml_backend_score, 1 where it has none and so runs anywhere.
func score(path string) (int, error) {
	h, err := dynlib.OpenModule(path)
	if err != nil {
		return 0, err
	}
	score := 1
	if p, err := dynlib.Symbol(h, "ggml_backend_score"); err == nil {
		r, _, _ := purego.SyscallN(p)
		score = int(int32(r))
	}
	return score, dynlib.CloseModule(h)
}

func leftOut(m Module, err error) {
	slog.Warn("a compute module does not load and is left out", "module", filepath.Base(m.Path), "error", err)
}

// register loads one module by its absolute path, and gives its registry. ggml_backend_load looks nowhere else.
func (l *Library) register(m Module) (uintptr, error) {
	if err := dynlib.Whole(m.Path); err != nil {
		return 0, fmt.Errorf("the compute module %s does not load: %w", filepath.Base(m.Path), err)
	}
	l.captureErrors()
	reg := l.LoadModule(m.Path)
	said := l.captured()
	if reg == 0 {
		return 0, fmt.Errorf("the compute module %s does not load: %s", filepath.Base(m.Path), reason(said, "it does not suit this machine"))
	}
	return reg, nil
}

// Accelerators are the modules beside the executable that are not the CPU's. None of them is opened.
func (l *Library) Accelerators() ([]Module, error) {
	all, err := modules(l.Dir)
	return slices.DeleteFunc(all, Module.isCPU), err
}

// LoadAccelerator registers one of the Accelerators, once in a process, and lists its devices. Loading one may end the process, if it or the
// driver under it is broken: what has not been loaded elsewhere before is loaded in a child.
func (l *Library) LoadAccelerator(m Module) ([]Listed, error) {
	reg, known := l.accelerators[m.Path]
	if !known {
		var err error
		if reg, err = l.register(m); err != nil {
			return nil, err
		}
		l.accelerators[m.Path] = reg
	}
	var list []Listed
	for i := range l.RegDevCount(reg) {
		if d := l.listed(l.RegDevGet(reg, i)); d.Type != DeviceCPU {
			list = append(list, d)
		}
	}
	return list, nil
}

// bindCPU finds the CPU's device and the calls that only its module has.
func (l *Library) bindCPU() error {
	l.cpuDevice = l.DevByType(DeviceCPU)
	if l.cpuDevice == 0 {
		return fmt.Errorf("the compute module %s has no CPU device", filepath.Base(l.CPU.Path))
	}
	reg := l.DevRegistry(l.cpuDevice)
	for name, f := range map[string]any{
		"ggml_backend_set_n_threads":      &l.setThreads,
		"ggml_threadpool_new":             &l.poolNew,
		"ggml_threadpool_free":            &l.poolFree,
		"ggml_backend_cpu_set_threadpool": &l.poolSet,
	} {
		p := l.ProcAddress(reg, name)
		if p == 0 {
			return fmt.Errorf("the compute module %s lacks %s: it is of another llama.cpp release", filepath.Base(l.CPU.Path), name)
		}
		purego.RegisterFunc(f, p)
	}
	return nil
}

// Listed is a device as ggml describes it.
type Listed struct {
	Name, Description string
	Type              int32
	Free, Total       int64 // bytes; 0: not reported
	Handle            uintptr
}

// Devices lists what ggml has registered.
func (l *Library) Devices() []Listed {
	var list []Listed
	for i := range l.DevCount() {
		list = append(list, l.listed(l.DevGet(i)))
	}
	return list
}

// listed describes a device as ggml does, without using it.
func (l *Library) listed(h uintptr) Listed {
	d := Listed{Name: l.DevName(h), Description: l.DevDescription(h), Type: l.DevType(h), Handle: h}
	var free, total uintptr
	l.DevMemory(h, &free, &total)
	d.Free, d.Total = int64(free), int64(total)
	return d
}
