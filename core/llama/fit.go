package llama

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/ebitengine/purego"

	"github.com/bmoe/bmoe/platform/dynlib"
)

// ErrNoFit says that no placement leaves the devices their margin.
var ErrNoFit = errors.New("no placement fits the devices")

// Common is libbmoe-common: what llama.cpp's common library says of where a model fits and what a session over it reserves.
// It looks at the model's metadata and reads no weight.
type Common struct {
	lib *Library

	version func() int32
	fit     func(s *commonSession, margin uint64, p *commonPlacement, why *byte, size uint64) int32
	project func(s *commonSession, p *commonPlacement, memory *Memory, why *byte, size uint64) int32
	held    func(ctx uintptr, host *Memory, why *byte, size uint64) int32
}

// SessionShape is a session as far as memory follows from it: a model's file, devices by their names, and a context.
type SessionShape struct {
	Path      string
	Devices   []string // that layers may go to, in order; none: the host alone
	Context   ContextOptions
	IntKV     string // metadata to replace by Value, or ""
	Value     int64
	Placement LayerPlacement // for Project
}

// LayerPlacement is which layers devices take.
type LayerPlacement struct {
	Layers    int             // counted from the last, the output head being one more; -1: all
	Split     []int           // layers of each device; all 0: by the memory they have free
	Overrides []NamedOverride // the first that matches decides
}

// NamedOverride sends the tensors that match an ECMAScript pattern to the buffer type of that name.
type NamedOverride struct{ Pattern, Where string }

// Memory is what a session takes in one place, in bytes. It mirrors bmoe_common_memory.
type Memory struct {
	Free, Total             int64 // as the device reports it; 0: it does not
	Model, Context, Compute int64
}

// The structs below mirror bmoe-common.h; TestLayout compares them with it too.
type commonSession struct {
	Path, Devices               uintptr
	DevicesN                    uint32
	Context, Ubatch, OutputsMax uint32
	TypeK, TypeV, FlashAttn     int32
	_                           int32
	KVKey                       uintptr
	KVValue                     int64
}

type commonOverride struct {
	Pattern [128]byte
	Where   [64]byte
}

type commonPlacement struct {
	Overrides, Split uintptr
	OverridesN, Room uint32
	Layers           int32
	_                int32
}

// Values of enum bmoe_common_status, and the version of the header.
const (
	commonVersion = 1
	commonDone    = 0
	commonNoFit   = 1
)

// whySize is the room for a reason.
const whySize = 512

// OpenCommon opens libbmoe-common beside the other libraries. The error wraps ErrMissing where it is not there.
func (l *Library) OpenCommon() (*Common, error) {
	file := dynlib.Name("bmoe-common")
	path := filepath.Join(l.Dir, file)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("%w: %s is not in %s", ErrMissing, file, l.Dir)
	}
	h, err := dynlib.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s does not load: %w", file, err)
	}
	c := &Common{lib: l}
	for name, f := range map[string]any{
		"bmoe_common_version": &c.version, "bmoe_common_fit": &c.fit, "bmoe_common_project": &c.project, "bmoe_common_held": &c.held,
	} {
		p, err := dynlib.Symbol(h, name)
		if err != nil {
			return nil, fmt.Errorf("%s is not of this program's release: %w", file, err)
		}
		purego.RegisterFunc(f, p)
	}
	if v := c.version(); v != commonVersion {
		return nil, fmt.Errorf("%s is of version %d and this program needs %d", file, v, commonVersion)
	}
	return c, nil
}

// Fit asks where the layers of s go, so that every device has margin bytes left. s.Placement is not read.
//
// Source: common_fit_params of fit.h.
func (c *Common) Fit(s SessionShape, margin int64) (LayerPlacement, error) {
	overrides := make([]commonOverride, c.lib.MaxOverrides())
	split := make([]int32, len(s.Devices)+1)
	p := &commonPlacement{Overrides: Addr(overrides), Split: Addr(split), Room: uint32(len(overrides))}
	err := c.call(s, func(in *commonSession, why *byte) int32 { return c.fit(in, uint64(margin), p, why, whySize) })
	runtime.KeepAlive(overrides)
	runtime.KeepAlive(split)
	if err != nil {
		return LayerPlacement{}, err
	}
	found := LayerPlacement{Layers: int(p.Layers)}
	for _, n := range split[:len(s.Devices)] {
		found.Split = append(found.Split, int(n))
	}
	for _, o := range overrides[:p.OverridesN] {
		found.Overrides = append(found.Overrides, NamedOverride{GoString(Addr(o.Pattern[:])), GoString(Addr(o.Where[:]))})
	}
	return found, nil
}

// Project says what the session would take: of each of its devices in order, and last of the host.
//
// Source: common_get_device_memory_data of fit.h.
func (c *Common) Project(s SessionShape) ([]Memory, error) {
	place := s.Placement
	overrides := make([]commonOverride, len(place.Overrides)+1)
	for i, o := range place.Overrides {
		if copy(overrides[i].Pattern[:127], o.Pattern) < len(o.Pattern) || copy(overrides[i].Where[:63], o.Where) < len(o.Where) {
			return nil, fmt.Errorf("the override %s=%s is longer than can be passed on", o.Pattern, o.Where)
		}
	}
	split := make([]int32, len(s.Devices)+1)
	for i, n := range place.Split[:min(len(place.Split), len(s.Devices))] {
		split[i] = int32(n)
	}
	memory := make([]Memory, len(s.Devices)+1)
	p := &commonPlacement{Overrides: Addr(overrides), Split: Addr(split), OverridesN: uint32(len(place.Overrides)), Layers: int32(place.Layers)}
	err := c.call(s, func(in *commonSession, why *byte) int32 { return c.project(in, p, &memory[0], why, whySize) })
	runtime.KeepAlive(overrides)
	runtime.KeepAlive(split)
	return memory, err
}

// Held says what a live context holds in host memory.
//
// Source: llama_get_memory_breakdown of llama-ext.h.
func (c *Common) Held(ctx *Context) (Memory, error) {
	var host Memory
	why := make([]byte, whySize)
	if c.held(ctx.handle, &host, &why[0], whySize) != commonDone {
		return Memory{}, errors.New(GoString(Addr(why)))
	}
	return host, nil
}

// call passes a session on, and makes an error of what came back.
func (c *Common) call(s SessionShape, f func(in *commonSession, why *byte) int32) error {
	path, key := CString(s.Path), CString(s.IntKV)
	names := make([][]byte, len(s.Devices))
	list := make([]uintptr, len(s.Devices)+1)
	for i, d := range s.Devices {
		names[i] = CString(d)
		list[i] = Addr(names[i])
	}
	o := s.Context
	in := &commonSession{
		Path: Addr(path), Devices: Addr(list), DevicesN: uint32(len(s.Devices)),
		Context: uint32(o.Length), Ubatch: uint32(o.Ubatch), OutputsMax: uint32(o.OutputsMax),
		TypeK: o.TypeK, TypeV: o.TypeV, FlashAttn: o.FlashAttn,
	}
	if s.IntKV != "" {
		in.KVKey, in.KVValue = Addr(key), s.Value
	}
	why := make([]byte, whySize)
	c.lib.captureErrors()
	status := f(in, &why[0])
	said := c.lib.captured()
	runtime.KeepAlive(path)
	runtime.KeepAlive(key)
	runtime.KeepAlive(names)
	runtime.KeepAlive(list)
	switch status {
	case commonDone:
		return nil
	case commonNoFit:
		return ErrNoFit
	}
	return fmt.Errorf("nothing can be projected for it: %s", reason(said, GoString(Addr(why))))
}
