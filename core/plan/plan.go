// Package plan chooses how a model runs on a machine and says why.
//
// It is pure: no input or output, no clock, no llama.cpp, and no system, vendor or backend by name. It reads profiles and
// a set of parameters and returns another set.
package plan

import (
	"fmt"

	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/core/params"
)

// Regime is how a model and what a run may hold compare.
type Regime string

const (
	Fits           Regime = "fits"            // the whole model is held
	ExpertsStream  Regime = "experts-stream"  // only what every token needs is held
	DenseOversized Regime = "dense-oversized" // not even that
	Unknown        Regime = "unknown"         // nobody knows what the run may hold
)

// Source is what a decision rests on.
type Source string

const (
	Measured Source = "measured" // a fact of the machine
	Derived  Source = "derived"  // arithmetic over facts
	Policy   Source = "policy"   // a rule of this program
	Operator Source = "operator" // a person's flag or variable; never changed
	Unprobed Source = "unprobed" // the deciding fact is unknown: the default stands
)

// Decision is one choice. Knob is a parameter's name, or what was found out ("regime").
type Decision struct {
	Knob   string `json:"knob"`
	Value  string `json:"value"`
	Source Source `json:"source"`
	Reason string `json:"reason"` // the full account, with its arithmetic
	Brief  string `json:"brief"`  // one sentence with the figure that decided, and no names of flags
}

// Line prints the decision; full gives the reason in place of the brief.
func (d Decision) Line(full bool) string {
	text := d.Brief
	if full {
		text = d.Reason
	}
	return fmt.Sprintf("  %s = %s  [%s]  %s", d.Knob, d.Value, d.Source, text)
}

// Plan is every choice of a run.
type Plan struct {
	Regime    Regime
	Decisions []Decision
	Set       *params.Set // the request with every choice made, and no plan asked for
}

// Make plans a run of the model on the machine. What a person set in request is kept.
func Make(m *model.Profile, on machine.Profile, request *params.Set) Plan {
	p := &planner{model: m, machine: on, set: request.Clone()}
	for _, stage := range []func(*planner){
		(*planner).memory,
		(*planner).context,
		(*planner).widest,
		(*planner).regime,
		(*planner).dense,
		(*planner).cache,
		(*planner).reads,
		(*planner).routing,
	} {
		stage(p)
	}
	p.put("auto", "off", params.FromPlan)
	return Plan{Regime: p.is, Decisions: p.decisions, Set: p.set}
}

// planner is the state that the stages share. Sizes are bytes.
type planner struct {
	model     *model.Profile
	machine   machine.Profile
	set       *params.Set
	decisions []Decision
	is        Regime

	usable  int64 // what the run may hold, less the margin; 0: unknown
	tokens  int64 // length of the context
	kv      int64 // its memory
	kvKnown bool
	width   int64 // of the widest graph, in tokens
}

// Policy figures.
const (
	marginShare  = 0.15      // of what may be held
	marginLeast  = 256 << 20 // bytes
	computeShare = 0.10      // of what may be held, for the buffers of the widest graph
	narrowest    = 512       // tokens that a graph is not narrowed below
	usualContext = 4096      // tokens
	program      = 150 << 20 // bytes of the program itself and its libraries
)

func (p *planner) put(name, text string, source params.Source) {
	if err := p.set.Put(name, text, source); err != nil {
		panic("plan: " + err.Error())
	}
}

// choose makes a decision about a parameter. Where a person has made it, theirs stands, with what the plan would have
// done in place of the reason.
func (p *planner) choose(name, value string, source Source, brief, reason string) {
	if p.pinned(name) {
		set := p.set.Text(name)
		p.note(name, set, Operator, "set by hand", fmt.Sprintf("set by hand; the plan would have chosen %s: %s", value, reason))
		return
	}
	p.put(name, value, params.FromPlan)
	p.note(name, p.set.Text(name), source, brief, reason)
}

func (p *planner) note(knob, value string, source Source, brief, reason string) {
	p.decisions = append(p.decisions, Decision{knob, value, source, reason, brief})
}

// pinned says whether a person chose a value. "auto" is not one.
func (p *planner) pinned(name string) bool {
	return p.set.Pinned(name) && p.set.Text(name) != "auto"
}

// bytes prints a size for people: MiB below 10 GiB, else GiB.
func bytes(n int64) string {
	if n < 10<<30 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
