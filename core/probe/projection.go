package probe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/bmoe/bmoe/core/llama"
	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/plan"
)

// ChildPlace is the hidden mode in which this program projects: its argument is a placeRequest, and it prints a
// plan.Placement, both as one line of JSON.
const ChildPlace = "--probe-place"

// OutputRows is how many rows of logits a session lets a graph give, and so what the projection reserves: a prompt is read
// for its last token's.
const OutputRows = 1

// deviceMargin is what the fitter leaves free on every device, in bytes: what llama.cpp leaves unless it is told.
const deviceMargin = 1 << 30

// Projector says what a session would reserve. Load opens the libraries beside the executable. Again starts this program
// again with arguments, and gives what it printed; nil: no child can be started, and the projection is made here. A model's
// metadata is anybody's, and one that lies can make llama.cpp end its process: a child takes that.
type Projector struct {
	Load  func() (*llama.Library, error)
	Again Again
}

// placeRequest is what a child is asked.
type placeRequest struct {
	Path         string   `json:"path"`
	Architecture string   `json:"architecture"`
	Layers       int      `json:"layers"`  // that can go to devices, the output head among them
	Devices      []string `json:"devices"` // that may take layers
	Modules      []string `json:"modules"` // that have them: the names of their files
	Session      Session  `json:"session"`
}

// Place asks llama.cpp's capacity fitter where the model's layers would go among the usable devices, and what a session as
// wide as r says, and one half as wide, would reserve for context and compute buffers: on the host alone, and placed. What
// could not be projected is unknown, and Projection.Why says what stood in the way. The error is ctx's alone.
func (p Projector) Place(ctx context.Context, r Request, among Accelerators) (plan.Placement, error) {
	if r.Model == nil {
		return unprojected(errors.New("no model was named")), ctx.Err()
	}
	ask := placeRequest{
		Path: r.Path, Architecture: r.Model.Architecture, Layers: r.Model.Layers + r.Model.MTPLayers + 1, Devices: []string{}, Modules: []string{}, Session: r.Session,
	}
	for _, d := range among.Devices {
		if machine.IsYes(d.Usable) {
			ask.Devices = append(ask.Devices, d.Name)
		}
	}
	if len(ask.Devices) > 0 {
		ask.Modules = append(ask.Modules, among.Modules...)
	}
	found, err := p.ask(ctx, ask)
	if err != nil && len(ask.Devices) > 0 && ctx.Err() == nil {
		// What a device stands in the way of is projected without devices.
		without := err
		ask.Devices, ask.Modules = []string{}, []string{}
		if found, err = p.ask(ctx, ask); err == nil {
			found.Projection.Why += "; the devices were left out: " + unprojected(without).Projection.Why
		}
	}
	if ctx.Err() != nil {
		return unprojected(ctx.Err()), ctx.Err()
	}
	if err != nil {
		return unprojected(err), nil
	}
	return found, nil
}

// unprojected is a placement that nobody made. llama.cpp's words may be a model's, which are anybody's.
func unprojected(why error) plan.Placement {
	printable := func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}
	return plan.Placement{Projection: plan.Projection{Why: strings.Map(printable, why.Error())}}
}

func (p Projector) ask(ctx context.Context, r placeRequest) (found plan.Placement, err error) {
	if p.Again == nil {
		return p.project(r)
	}
	line, err := json.Marshal(r)
	if err != nil {
		return found, err
	}
	out, err := p.Again(ctx, ChildPlace, string(line))
	if err != nil {
		return found, fmt.Errorf("the process that projects it ended: %w", err)
	}
	if err := json.Unmarshal(out, &found); err != nil {
		return plan.Placement{}, fmt.Errorf("what the projecting process printed is no placement: %w", err)
	}
	if found.Projection.Width != r.Session.Ubatch {
		return plan.Placement{}, errors.New(cmp.Or(found.Projection.Why, "the projecting process answered for another session"))
	}
	return found, nil
}

// Child is the side of the child: it answers the request on out. Its error is one of the request or of out alone. Where
// llama.cpp ends the process, its last words are the answer, and the process ends well.
func (p Projector) Child(request string, out io.Writer) error {
	var r placeRequest
	if err := json.Unmarshal([]byte(request), &r); err != nil {
		return fmt.Errorf("%s: %w", ChildPlace, err)
	}
	answer := json.NewEncoder(out)
	load := p.Load
	p.Load = func() (*llama.Library, error) {
		lib, err := load()
		if err != nil {
			return nil, err
		}
		return lib, lib.OnFatal(func(said string) {
			if answer.Encode(unprojected(fmt.Errorf("llama.cpp can't go on with it: %s", said))) != nil {
				os.Exit(1)
			}
			os.Exit(0)
		})
	}
	found, err := p.project(r)
	if err != nil {
		found = unprojected(err)
	}
	return answer.Encode(found)
}

// project makes the projection in this process.
func (p Projector) project(r placeRequest) (found plan.Placement, err error) {
	lib, err := p.Load()
	if err != nil {
		return found, err
	}
	common, err := lib.OpenCommon()
	if err != nil {
		return found, err
	}
	for _, file := range r.Modules {
		if _, _, err := load(lib, file); err != nil {
			return found, err
		}
	}
	s := llama.SessionShape{Path: r.Path}
	if s.Context, err = shape(lib, r.Session); err != nil {
		return found, err
	}
	if r.Session.ExpertsUsed > 0 {
		s.IntKV, s.Value = r.Architecture+".expert_used_count", int64(r.Session.ExpertsUsed)
	}
	host, _, err := twoWidths(common, s)
	if err != nil {
		return plan.Placement{}, err
	}
	host.Why = "projected by llama.cpp for this model, context and width"
	found = plan.Placement{Projection: host}
	if len(r.Devices) == 0 {
		return found, nil
	}

	s.Devices = r.Devices
	switch s.Placement, err = common.Fit(s, deviceMargin); {
	case errors.Is(err, llama.ErrNoFit):
		return found, nil
	case err != nil:
		return found, err
	}
	if s.Placement.Layers < 0 {
		s.Placement.Layers = r.Layers
	}
	if s.Placement.Layers == 0 {
		return found, nil
	}
	if len(s.Devices) == 1 {
		s.Placement.Split = []int{s.Placement.Layers}
	} else if !slices.ContainsFunc(s.Placement.Split, func(n int) bool { return n > 0 }) {
		whole, err := common.Project(s)
		if err != nil {
			return found, err
		}
		s.Placement.Split = byFreeMemory(whole[:len(s.Devices)], s.Placement.Layers)
	}
	placed, memory, err := twoWidths(common, s)
	if err != nil {
		return found, err
	}
	placed.Why = host.Why
	found.Placed = placed
	found.Projection.Devices = placed.Devices
	found.Layers = s.Placement.Layers
	for _, o := range s.Placement.Overrides {
		found.Overrides = append(found.Overrides, plan.Override{Pattern: o.Pattern, Where: o.Where})
	}
	for i, name := range s.Devices {
		if bytes := memory[i].Model + memory[i].Context; bytes > 0 {
			found.Devices = append(found.Devices, plan.DeviceShare{Name: name, Layers: s.Placement.Split[i], Bytes: bytes})
		}
	}
	return found, nil
}

// shape is a session as llama.cpp is asked for it. It must be what core/engine asks.
func shape(lib *llama.Library, s Session) (o llama.ContextOptions, err error) {
	named := func(name string) (int32, error) {
		if name == "" {
			name = "f16"
		}
		return lib.KVType(name)
	}
	o = llama.ContextOptions{Length: s.Context, Ubatch: s.Ubatch, OutputsMax: OutputRows}
	if o.TypeK, err = named(s.TypeK); err != nil {
		return o, err
	}
	if o.TypeV, err = named(s.TypeV); err != nil {
		return o, err
	}
	switch s.FlashAttn {
	case "on":
		o.FlashAttn = 1
	case "off":
		o.FlashAttn = 0
	default:
		o.FlashAttn = -1
	}
	if o.Length < 1 || o.Ubatch < 1 {
		return o, fmt.Errorf("a session of %d tokens, %d at once, is none", s.Context, s.Ubatch)
	}
	return o, nil
}

// twoWidths projects a session at its width and at half of it: what a token of width costs is in the difference. memory is
// what each of its devices, and last the host, gives at the whole width.
func twoWidths(c *llama.Common, s llama.SessionShape) (p plan.Projection, memory []llama.Memory, err error) {
	if memory, err = c.Project(s); err != nil {
		return p, nil, err
	}
	width := s.Context.Ubatch
	var half []llama.Memory
	if width > 1 {
		s.Context.Ubatch = width / 2
		if half, err = c.Project(s); err != nil {
			return p, nil, err
		}
	} else {
		half = make([]llama.Memory, len(memory))
	}
	host := len(memory) - 1
	reserve := func(m llama.Memory) plan.Reserve { return plan.Reserve{Context: m.Context, Compute: m.Compute} }
	p = plan.Projection{Width: width, At: reserve(memory[host]), Half: reserve(half[host]), Devices: map[string]plan.DeviceWidth{}}
	for i, name := range s.Devices {
		p.Devices[name] = plan.DeviceWidth{At: memory[i].Compute, Half: half[i].Compute}
	}
	return p, memory, nil
}

// byFreeMemory divides layers among devices as llama.cpp does when it is told no split: each takes its share of the memory
// that is free, cut where a layer begins.
func byFreeMemory(devices []llama.Memory, layers int) []int {
	split := make([]int, len(devices))
	var all float64
	for _, d := range devices {
		all += float64(d.Free)
	}
	if all <= 0 {
		split[0] = layers
		return split
	}
	var upTo float64
	placed := 0
	for i, d := range devices {
		upTo += float64(d.Free) / all
		for placed < layers && (float64(placed)/float64(layers) < upTo || i == len(devices)-1) {
			split[i]++
			placed++
		}
	}
	return split
}
