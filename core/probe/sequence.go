package probe

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/core/plan"
)

// Request is what is looked at, and how far a look may go.
type Request struct {
	Model *model.Profile // that a run is planned for; nil: the machine alone is looked at
	Path  string         // of the model's file; "" where only its profile is here

	Session Session // what the model would be opened with
	Direct  bool    // read past the file cache, where that works
	Measure bool    // measure the devices, the processor and the drive; false: only what costs nothing is asked
	Hold    bool    // measure memory by holding it
	Memory  int64   // bytes that a person lets the run hold; 0: no limit
	Threads int     // that a run computes with; 0: the physical cores

	Known *machine.Profile // facts that stand in for this machine's; nil: it is asked

	Tell func(step string, fraction float64) // how far the look is; nil: nobody asks
}

// Session is how a model would be opened, as far as memory follows from it.
type Session struct {
	Context, Ubatch int    // tokens
	TypeK, TypeV    string // ggml types of the KV cache
	FlashAttn       string // auto, on or off
	ExpertsUsed     int    // routing width; 0: the model's own
}

// Found is what a look found.
type Found struct {
	Machine   machine.Profile
	Placement plan.Placement
	Steps     []Step
}

// Step is one step of the look and what it took.
type Step struct {
	Name string        `json:"name"`
	Took time.Duration `json:"took_ns"`
}

// Took is the time of the whole look.
func (f Found) Took() time.Duration {
	var all time.Duration
	for _, s := range f.Steps {
		all += s.Took
	}
	return all
}

// Instruments are what a look measures with. Each gives facts, unknown ones with their reason; its error is ctx's alone.
type Instruments struct {
	Machine   func() (machine.Profile, error)
	Devices   func(ctx context.Context, r Request, on machine.Profile) (Accelerators, error)
	Processor func(ctx context.Context, r Request, on machine.Profile) (read, wide machine.Fact[float64], err error)
	Placement func(ctx context.Context, r Request, among Accelerators) (plan.Placement, error)
	Drive     func(ctx context.Context, path string, m *model.Profile, direct bool, tell func(float64)) (machine.Storage, error)
	Headroom  func(ctx context.Context, on machine.Memory, tell func(float64)) (machine.Fact[int64], error)
}

// steps are the one order of a look, which is a measurement and not a preference: what costs nothing comes first; devices
// are asked in processes of their own before this one uses any; what measures computing comes before the drive is read,
// which keeps the system busy for a while; and memory is held last, since that leaves the kernel busy.
var steps = []struct {
	name  string
	takes func(Request) bool // whether the step is taken; what it would have found is unknown otherwise, and says why
	run   func(*look, context.Context) error
}{
	{"free facts", func(r Request) bool { return r.Known == nil }, (*look).free},
	{"devices", func(r Request) bool { return r.Known == nil || r.Path != "" && anyUsable(r.Known.Devices) }, (*look).devices},
	{"processor", func(r Request) bool { return r.Known == nil && r.Measure && r.Model != nil }, (*look).processor},
	{"projection", func(r Request) bool { return r.Path != "" }, (*look).placement},
	{"drive", func(r Request) bool { return r.Known == nil && r.Measure && r.Path != "" }, (*look).drive},
	{"held memory", func(r Request) bool { return r.Known == nil && r.Hold }, (*look).headroom},
}

// look is a look under way.
type look struct {
	Instruments
	Request
	found   Found
	modules []string // as in Accelerators
	warn    error
}

// Look asks and measures in the one order that every front-end uses. The facts are valid whatever the error says; it is
// ctx's, or of a machine that does not say what memory it has.
func (in Instruments) Look(ctx context.Context, r Request) (Found, error) {
	l := &look{Instruments: in, Request: r}
	if r.Known != nil {
		l.found.Machine = *r.Known
	} else {
		l.found.Machine.Storage = Unread(l.unmeasured())
	}
	if r.Path == "" {
		l.found.Placement.Projection.Why = "the model is not here"
	}
	for _, step := range steps {
		if !step.takes(r) {
			continue
		}
		if ctx.Err() != nil {
			return l.found, ctx.Err()
		}
		l.tell(step.name)(0)
		start := time.Now()
		if err := step.run(l, ctx); err != nil {
			return l.found, err
		}
		l.found.Steps = append(l.found.Steps, Step{step.name, time.Since(start)})
	}
	return l.found, l.warn
}

// unmeasured is why nothing was measured, or would not be.
func (l *look) unmeasured() string {
	switch {
	case l.Model == nil:
		return "no model was named"
	case !l.Measure:
		return "--no-probe-io"
	case l.Path == "":
		return "the model is not here"
	}
	return ""
}

func (l *look) tell(step string) func(float64) {
	return func(fraction float64) {
		if l.Tell != nil {
			l.Tell("looking at the "+step, fraction)
		}
	}
}

func (l *look) free(context.Context) error {
	storage := l.found.Machine.Storage
	l.found.Machine, l.warn = l.Machine()
	l.found.Machine.Storage = storage
	why := l.unmeasured()
	l.found.Machine.Cores.ReadRate = machine.Unknown[float64](why)
	l.found.Machine.Cores.WideRate = machine.Unknown[float64](why)
	if !l.Hold {
		l.found.Machine.Memory.Keepable = machine.Unknown[int64]("--probe-mem would measure it")
	}
	return nil
}

// devices asks for this machine's. Of a machine that was saved the devices are known, and the modules here are looked for
// that have them.
func (l *look) devices(ctx context.Context) error {
	found, err := l.Devices(ctx, l.Request, l.found.Machine)
	l.modules = found.Modules
	if l.Known == nil {
		l.found.Machine.Devices, l.found.Machine.Backends = found.Devices, found.Backends
	}
	return err
}

func anyUsable(devices []machine.Device) bool {
	return slices.ContainsFunc(devices, func(d machine.Device) bool { return machine.IsYes(d.Usable) })
}

func (l *look) processor(ctx context.Context) (err error) {
	cores := &l.found.Machine.Cores
	cores.ReadRate, cores.WideRate, err = l.Processor(ctx, l.Request, l.found.Machine)
	return err
}

func (l *look) placement(ctx context.Context) (err error) {
	if why := l.beyond(); why != "" {
		l.found.Placement = plan.Placement{Projection: plan.Projection{Why: why}}
		return nil
	}
	l.found.Placement, err = l.Placement(ctx, l.Request, Accelerators{Devices: l.found.Machine.Devices, Backends: l.found.Machine.Backends, Modules: l.modules})
	return err
}

// leastPerElement is what an element of a KV cache takes in the smallest of its types, in bytes.
const leastPerElement = 0.5

// beyond says why a session is beyond this machine, so that nobody need project it, or "". Projecting takes a time that grows
// with the context: minutes for one of millions of tokens.
func (l *look) beyond() string {
	room := l.found.Machine.Memory.Total.Or(0)
	if room == 0 || l.Model == nil {
		return ""
	}
	for _, d := range l.found.Machine.Devices {
		room += d.Total.Or(0)
	}
	if kv := l.Model.KVBytes(l.Session.Context, leastPerElement, leastPerElement); kv > room {
		return fmt.Sprintf("a context of %d tokens takes %d MiB at the least, more than there is memory", l.Session.Context, kv>>20)
	}
	return ""
}

func (l *look) drive(ctx context.Context) (err error) {
	shard := l.Model.ExpertShard()
	if shard < 0 {
		l.found.Machine.Storage = Unread("the model has no experts")
		return nil
	}
	path := filepath.Join(filepath.Dir(l.Path), l.Model.Shards[shard].Name)
	l.found.Machine.Storage, err = l.Drive(ctx, path, l.Model, l.Direct, l.tell("drive"))
	return err
}

func (l *look) headroom(ctx context.Context) (err error) {
	l.found.Machine.Memory.Keepable, err = l.Headroom(ctx, l.found.Machine.Memory, l.tell("held memory"))
	return err
}
