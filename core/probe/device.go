package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bmoe/bmoe/core/llama"
	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/platform/graphics"
	"github.com/bmoe/bmoe/platform/memory"
	"github.com/bmoe/bmoe/platform/process"
)

// ChildDevice is the hidden mode in which this program tries one device: its argument is a deviceRequest, and it prints a
// machine.Device, both as one line of JSON.
const ChildDevice = "--probe-device"

// Accelerators are what computes beside the host's cores, and what was looked for it.
type Accelerators struct {
	Devices  []machine.Device
	Backends machine.Backends
	Modules  []string // files of those that a process loaded and lived: no other is ever loaded in this one
}

// deviceRequest is what a child is asked of a device.
type deviceRequest struct {
	Module    string   `json:"module"` // the name of its file
	Device    string   `json:"device"`
	Matmuls   []matmul `json:"matmuls"`   // that the device would run; the first is the one that its rate is measured with
	NoMatmuls string   `json:"nomatmuls"` // why there are none
	Memory    int64    `json:"memory"`    // bytes of weights to measure with, as on the host
	Available int64    `json:"available"` // bytes that the host has available; 0: not known
	Threads   int      `json:"threads"`   // of the host, whose answer the device's is compared with
}

// Devices lists what every module beside the executable has, and tries each device in a child of its own. What ended a child,
// let it wait for longer than it may, or answered for another is unusable, with the reason, and is never touched by this
// process. With r.Measure false they are listed alone; so they are where r.Known is set. The only error is ctx's.
func (f Finder) Devices(ctx context.Context, r Request, on machine.Profile) (found Accelerators, err error) {
	found.Backends.Linked = machine.Known(0, "every backend of this build is a module of its own")
	list, err := f.List(ctx)
	if err != nil {
		found.Backends.Loaded = machine.Unknown[int](err.Error())
		return found, ctx.Err()
	}
	var counted []string
	for _, l := range list {
		if l.Failed != nil {
			found.Devices = append(found.Devices, machine.Scrub(machine.Device{
				Name: l.Name, Description: "the module " + l.Module, Usable: machine.No(l.Failed.Error()),
			}))
			continue
		}
		found.Modules = append(found.Modules, l.Module)
		counted = append(counted, l.Module)
		for _, d := range l.Devices {
			device := unmeasured(d, "--no-probe-io")
			if r.Measure && r.Known == nil {
				if device, err = f.device(ctx, f.request(r, on, l, d), d); err != nil {
					return found, err
				}
			}
			found.Devices = append(found.Devices, device)
		}
	}
	from := "no compute module but the processor's is beside this program"
	if len(counted) > 0 {
		from = strings.Join(counted, ", ")
	}
	found.Backends.Loaded = machine.Known(len(counted), from)
	return found, ctx.Err()
}

// unmeasured is a device of which nothing is known but what its module says.
func unmeasured(d Listed, why string) machine.Device {
	device := machine.Device{Name: d.Name, Description: d.Description, Usable: machine.Unknown[bool](why)}
	device.Total, device.Free = stated(d.Free, d.Total)
	return device
}

// stated is what a device says of its memory. One without a size says nothing.
func stated(free, total int64) (all, left machine.Fact[int64]) {
	if total <= 0 {
		const why = "the device states no size"
		return machine.Unknown[int64](why), machine.Unknown[int64](why)
	}
	const from = "as the device states"
	return machine.Known(total, from), machine.Known(min(max(free, 0), total), from)
}

func (f Finder) request(r Request, on machine.Profile, l Listing, d Listed) deviceRequest {
	ask := deviceRequest{
		Module: l.Module, Device: d.Name, Matmuls: matmulsOf(r.Model), Memory: allowance(r, on), Available: on.Memory.Available.Or(0), Threads: threadsOf(r, on),
	}
	switch {
	case r.Model == nil:
		ask.NoMatmuls = "no model was named"
	case len(ask.Matmuls) == 0:
		ask.NoMatmuls = "the model has no experts"
	}
	return ask
}

// device tries one.
func (f Finder) device(ctx context.Context, ask deviceRequest, as Listed) (machine.Device, error) {
	d, err := f.ask(ctx, ask)
	if ctx.Err() != nil {
		return d, ctx.Err()
	}
	if err != nil {
		d = unmeasured(as, "")
		d.Usable = machine.No(err.Error())
		d = machine.Scrub(d)
	}
	return d, nil
}

func (f Finder) ask(ctx context.Context, ask deviceRequest) (machine.Device, error) {
	if f.Again == nil {
		return f.try(ctx, ask)
	}
	line, err := json.Marshal(ask)
	if err != nil {
		return machine.Device{}, err
	}
	out, ended := f.Again(ctx, ChildDevice, string(line))
	d, err := lastAnswer(out, func(d machine.Device) error {
		if d.Name != ask.Device {
			return fmt.Errorf("it answered for another device, %q", d.Name)
		}
		p := machine.Profile{Devices: []machine.Device{d}}
		return p.Check()
	})
	switch {
	case errors.Is(ended, ErrNoAnswer):
		return d, fmt.Errorf("its probe gave %w", ended)
	case ended != nil:
		return d, fmt.Errorf("its probe ended the process that ran it: %w", ended)
	case err != nil:
		return d, fmt.Errorf("its probe: %w", err)
	}
	return machine.Scrub(d), nil
}

// deviceChild is the side of the child.
func deviceChild(request string, out io.Writer) error {
	var ask deviceRequest
	if err := json.Unmarshal([]byte(request), &ask); err != nil {
		return fmt.Errorf("%s: %w", ChildDevice, err)
	}
	d, err := Finder{Load: mortal}.try(context.Background(), ask)
	if err != nil {
		return err
	}
	return say(out, d)
}

// try tries a device in this process. A fault that the device reports is part of the answer; the error says why there is no
// such device.
func (f Finder) try(ctx context.Context, ask deviceRequest) (machine.Device, error) {
	lib, err := f.Load()
	if err != nil {
		return machine.Device{}, err
	}
	all, _, err := load(lib, ask.Module)
	if err != nil {
		return machine.Device{}, err
	}
	at := slices.IndexFunc(all, func(l llama.Listed) bool { return l.Name == ask.Device })
	if at < 0 {
		return machine.Device{}, fmt.Errorf("%s lists no device %s any more", ask.Module, ask.Device)
	}
	t := trial{ctx: ctx, lib: lib, deviceRequest: ask, listed: all[at], dev: all[at].Handle}
	t.found.Name, t.found.Description = t.listed.Name, t.listed.Description
	t.found.Total, t.found.Free = stated(t.listed.Free, t.listed.Total)
	t.found.Usable = machine.Yes("what it was asked to do, it did")
	for _, question := range []func() error{t.capabilities, t.pool, t.experts, t.errors, t.rates} {
		if err := question(); err != nil {
			if ctx.Err() != nil {
				return t.found, ctx.Err()
			}
			t.found.Usable = machine.No(err.Error())
			break
		}
	}
	return t.found, nil
}

// trial is one device being tried. A question's error says what the device does not do though it says that it does: nothing
// more is asked of it then.
type trial struct {
	ctx context.Context
	lib *llama.Library
	deviceRequest
	listed llama.Listed
	dev    uintptr
	found  machine.Device
}

// capabilities are what the device says of itself. Only a yes to wrapping the host's memory is evidence, and only that is
// tried: where it is not advertised the call may not be there.
func (t *trial) capabilities() error {
	p := t.lib.Properties(t.dev)
	t.found.HostBuffer = machine.No("it names no buffer type of the host that it computes on")
	if p.HostBuffer {
		t.found.HostBuffer = machine.Yes("it names a buffer type of the host and computes on it")
	}
	t.found.HostPointer = machine.Unknown[bool]("it does not advertise it, which is no evidence, and it can't be tried then")
	if p.HostPointer {
		if err := t.lib.WrapsHostMemory(t.dev); err != nil {
			return err
		}
		t.found.HostPointer = machine.Yes("it advertises it, and read and wrote memory that it was given")
	}
	return nil
}

// What an allocation must be for its effect on the host's memory to be told from what else happens there, and how often it is
// made.
const (
	leastHeldThere = 16 << 20
	mostHeldThere  = 256 << 20
	holds          = 3
)

// pool is whose memory the device's buffers are. What the device or the system says of it stands; else available memory is
// watched while the device holds some, which can't overturn a known "shared".
func (t *trial) pool() error {
	n := int64(mostHeldThere)
	if t.Available > 0 {
		n = min(n, t.Available/8)
	}
	if free, known := t.found.Free.Get(); known {
		n = min(n, free/2)
	}
	if most := t.lib.LargestBuffer(t.dev); most > 0 {
		n = min(n, most)
	}
	watched := machine.Unknown[bool](fmt.Sprintf("%d MiB to hold there are too few to see in the host's memory", n>>20))
	locks := machine.Unknown[bool]("the system does not say of its buffers whether they may be reclaimed")
	if n >= leastHeldThere {
		effects, err := t.held(n)
		switch {
		case err != nil && t.found.Free.Known():
			return fmt.Errorf("of %d MiB that it says are free %w", t.found.Free.Or(0)>>20, err)
		case err != nil:
			watched = machine.Unknown[bool](err.Error())
		default:
			watched = poolOf(effects, n)
			if l := middle(effects, func(e effect) int64 { return e.locked }); l >= n/2 {
				locks = machine.Yes(fmt.Sprintf("%d MiB of this process were locked while it held %d", l>>20, n>>20))
			}
		}
	}
	t.found.SharesHost = watched
	if direct := t.direct(); direct.Known() {
		t.found.SharesHost = direct
	}
	t.found.Wires = locks
	if machine.IsNo(t.found.SharesHost) {
		t.found.Wires = machine.No("its memory is its own")
	}
	return nil
}

// direct is what the device, or the system's own interface to it, says of its memory.
func (t *trial) direct() machine.Fact[bool] {
	if t.listed.Type == llama.DeviceIGPU {
		return machine.Yes("it says that it is integrated and uses the host's memory")
	}
	if strings.HasPrefix(t.listed.Name, "MTL") {
		// Only the system's own device is known by its interface: the same description says that it is this one.
		if name, unified, err := graphics.Unified(); err == nil && name == t.listed.Description {
			return machine.Known(unified, "hasUnifiedMemory of the system's default graphics device")
		}
	}
	return machine.Fact[bool]{}
}

// effect is what changed on the host while a device held memory. Sizes are bytes.
type effect struct {
	dropped  int64 // less was available
	resident int64 // more of this process was in RAM
	locked   int64 // more of it was locked
}

// held holds n bytes there a few times.
func (t *trial) held(n int64) ([]effect, error) {
	var all []effect
	for i := range holds + 1 {
		before, err := reading()
		if err != nil {
			return nil, err
		}
		release, err := t.lib.Hold(t.dev, n)
		if err != nil {
			return nil, err
		}
		now, err := reading()
		release()
		if err != nil {
			return nil, err
		}
		if i > 0 { // the first brings in what the driver itself needs
			all = append(all, effect{before.dropped - now.dropped, now.resident - before.resident, now.locked - before.locked})
		}
	}
	return all, nil
}

// reading is the host's memory now. What a system does not say does not change.
func reading() (effect, error) {
	m, err := memory.Read()
	if err != nil {
		return effect{}, err
	}
	u, err := process.Read()
	if err != nil {
		return effect{}, err
	}
	return effect{dropped: m.Available, resident: max(u.Resident, 0), locked: max(u.Locked, 0)}, nil
}

func middle(all []effect, of func(effect) int64) int64 {
	var list []int64
	for _, e := range all {
		list = append(list, of(e))
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// poolOf reads whose memory n bytes were. What this process has in RAM is the host's. What the host has available moves
// with other programs too: that it fell tells, that it did not tells where it never did, and all else tells nothing.
func poolOf(effects []effect, n int64) machine.Fact[bool] {
	resident := middle(effects, func(e effect) int64 { return e.resident })
	dropped := middle(effects, func(e effect) int64 { return e.dropped })
	switch {
	case resident >= n/2:
		return machine.Yes(fmt.Sprintf("this process had %d MiB more in RAM while it held %d", resident>>20, n>>20))
	case dropped >= n/2:
		return machine.Yes(fmt.Sprintf("the host had %d MiB less available while it held %d", dropped>>20, n>>20))
	}
	var each []string
	still := true
	for _, e := range effects {
		each = append(each, fmt.Sprint(e.dropped>>20))
		still = still && e.dropped <= n/4 && e.dropped >= -n/4
	}
	from := fmt.Sprintf("the host had %s MiB less available while it held %d", strings.Join(each, ", "), n>>20)
	if still {
		return machine.No(from)
	}
	return machine.Unknown[bool](from + ", which tells nothing")
}

// experts is whether the device runs every expert matmul of the model, at both widths, and in which layout of the weights.
func (t *trial) experts() error {
	if len(t.Matmuls) == 0 {
		t.found.RunsExperts = machine.Unknown[bool](t.NoMatmuls)
		t.found.NeedsRepack = machine.Unknown[bool](t.NoMatmuls)
		return nil
	}
	t.found.RunsExperts = machine.Yes("it says so of every shape and type of the model's experts, 1 and 128 tokens wide")
	t.found.NeedsRepack = machine.No("it takes the model's weights as they are")
	for _, m := range t.Matmuls {
		for _, width := range []int{narrow, wide} {
			_, repacked, err := t.lib.Weighable(t.dev, m.as(width, 0, 0))
			if err != nil {
				why := fmt.Sprintf("%d wide with %s: %v", width, m, err)
				t.found.RunsExperts = machine.No(why)
				t.found.NeedsRepack = machine.Unknown[bool](why)
				return nil
			}
			if repacked {
				t.found.NeedsRepack = machine.Yes(fmt.Sprintf("it takes %s in a layout of its own alone", m.Type))
			}
		}
	}
	return nil
}

// compared is how much memory a comparison uses for weights, in bytes, unless the experts of one token are larger.
const compared = 16 << 20

// worst stands for an error that is no number, or too large for one.
const worst = 1e9

// errors compares the device's results with the host's on the same weights, in every shape and type, at both widths.
func (t *trial) errors() error {
	if !machine.IsYes(t.found.RunsExperts) {
		why := t.found.RunsExperts.From()
		t.found.ReadError, t.found.WideError = machine.Unknown[float64](why), machine.Unknown[float64](why)
		return nil
	}
	for width, f := range map[int]*machine.Fact[float64]{narrow: &t.found.ReadError, wide: &t.found.WideError} {
		var largest float64
		of := ""
		for _, m := range t.Matmuls {
			e, err := t.compare(m, width)
			if err != nil {
				return fmt.Errorf("%d wide with %s: %w", width, m, err)
			}
			if of == "" || e > largest {
				largest, of = e, m.String()
			}
		}
		*f = machine.Known(largest, "against the host on the same random weights; the worst of the model's shapes and types is "+of)
	}
	return nil
}

// compare is the normalized mean squared error of one matmul.
func (t *trial) compare(m matmul, width int) (float64, error) {
	ask := m.as(width, compared, t.Threads)
	want, err := t.answer(t.lib.CPUDevice(), ask)
	if err != nil {
		return 0, fmt.Errorf("the host: %w", err)
	}
	got, err := t.answer(t.dev, ask)
	if err != nil {
		return 0, err
	}
	return nmse(got, want), nil
}

func (t *trial) answer(dev uintptr, ask llama.ExpertMatmul) ([]float32, error) {
	s, err := t.lib.NewSweep(dev, ask)
	if err != nil {
		return nil, err
	}
	defer s.Free()
	return s.Answer()
}

// nmse is the normalized mean squared error of got: the squares of the differences over the squares of what is wanted.
func nmse(got, want []float32) float64 {
	var off, size float64
	for i, w := range want {
		d := float64(got[i]) - float64(w)
		off += d * d
		size += float64(w) * float64(w)
	}
	if e := off / size; e <= worst {
		return e
	}
	return worst // a result that is no number is as wrong as any
}

// rates are what the device computes with, and what handing one token's work over to it takes.
func (t *trial) rates() error {
	unknown := func(why string) {
		t.found.ReadRate, t.found.WideRate, t.found.Crossing = machine.Unknown[float64](why), machine.Unknown[float64](why), machine.Unknown[float64](why)
	}
	if !machine.IsYes(t.found.RunsExperts) {
		unknown(t.found.RunsExperts.From())
		return nil
	}
	if free, known := t.found.Free.Get(); known && free/2 < t.Memory {
		unknown(fmt.Sprintf("half of the %d MiB free there are less than the %d MiB that the host was measured with", free>>20, t.Memory>>20))
		return nil
	}
	m := t.Matmuls[0]
	if least := 2 * int64(m.Used) * m.Slice; t.Memory < least {
		unknown(fmt.Sprintf("%d MiB to measure in are too few", t.Memory>>20))
		return nil
	}
	s, err := t.lib.NewSweep(t.dev, m.as(narrow, t.Memory, t.Threads))
	if err != nil {
		return err
	}
	defer s.Free()
	if t.found.ReadRate, err = rateOf(t.ctx, s, m, narrow, ""); err != nil {
		return err
	}
	switch crossing, err := s.Crossing(t.ctx); {
	case t.ctx.Err() != nil:
		return t.ctx.Err()
	case errors.Is(err, llama.ErrUnpriced):
		t.found.Crossing = machine.Unknown[float64](err.Error())
	case err != nil:
		return err
	default:
		t.found.Crossing = machine.Known(crossing.Seconds(), "a token's input handed over and its result taken back, halved, less what the matmul takes")
	}
	t.found.WideRate, err = rate(t.ctx, t.lib, t.dev, m, wide, t.Memory, t.Threads)
	return err
}
