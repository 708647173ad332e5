package plan

import (
	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/core/params"
)

// Input is everything a plan follows from.
type Input struct {
	Machine   machine.Profile
	Model     *model.Profile
	Placement Placement
	History   Credit
	Params    *params.Set // what a person set is a pin
	Policy    Policy
	Session   Abilities
}

// Abilities is what the session that carries the plan out can do. A plan claims nothing beyond it.
type Abilities struct {
	LocksCache    bool // it locks the expert cache in memory, and fits it to what was locked
	PrefillDevice bool // it computes streamed experts on a device
	PlacesLayers  bool // it loads layers onto devices
}

// Plan is how to run the model, and why.
type Plan struct {
	Machine    string      `json:"machine"`
	Model      string      `json:"model"`
	Regime     Regime      `json:"regime"`
	Outcome    Outcome     `json:"outcome"`
	Decisions  []Decision  `json:"decisions"`
	Ledger     Ledger      `json:"ledger"`
	Lanes      []Lane      `json:"lanes"`      // what every group of weights costs wherever it may be
	Candidates []Candidate `json:"candidates"` // what competed for memory, best first
	Prediction Prediction  `json:"prediction"`
	Figures    Figures     `json:"figures"`

	Config map[string]string `json:"config"` // the run's parameters by their JSON keys, the model's file left out
	Params *params.Set       `json:"-"`      // the run: what was set by hand, what the plan chose, and the defaults
}

// Outcome is what comes of the plan.
type Outcome string

const (
	Streams   Outcome = "streams"    // experts are read from storage as they are needed
	Resident  Outcome = "resident"   // what the host computes fits in its memory
	OnDevices Outcome = "on-devices" // every layer's experts are on a device
	NoExperts Outcome = "no-experts" // a dense model
	Declined  Outcome = "declined"   // no room to stream in and no price to stream without: the file stays mapped
	ByHand    Outcome = "by-hand"    // a person turned streaming off
)

// stages are the steps of a plan in the order they are taken. Each reads what those before it left in the state.
var stages = []struct {
	name string
	run  func(*state)
}{
	{"widest graph", widestGraph},
	{"regime", regime},
	{"placement", placement},
	{"accelerator axis", acceleratorAxis},
	{"dense policy", densePolicy},
	{"ledger and prefill device", ledgerAndPrefill},
	{"cache floor", cacheFloor},
	{"storage knobs", storageKnobs},
	{"devices listed", devicesListed},
}

// Make plans a run.
func Make(in Input) Plan {
	s := newState(in)
	for _, stage := range stages {
		stage.run(s)
	}
	return s.finish()
}

// state is what the stages share.
type state struct {
	Input
	machine *machine.Profile
	policy  Policy
	plan    Plan
	set     *params.Set

	context int    // tokens
	share   share  // what is left to the host
	budget  budget // what may be held
	exempt  stores // what may be held exempt from reclaim

	streams    bool
	dense      string // how the dense set would be held: a value of the parameter
	denseWhy   account
	contenders []contender // devices that may compute a prefill, fastest first
	prefill    *arming     // the one that does
	allocation allocation
}

func newState(in Input) *state {
	s := &state{Input: in, policy: in.Policy, set: in.Params.Clone()}
	s.machine = &s.Input.Machine
	s.plan.Machine = s.machine.Name
	s.plan.Model = printable(in.Model.Name) // it is someone else's word, and may be out of a file of anybody's
	s.context = s.chooseContext()
	s.share = wholeModel(in.Model, s.width())
	s.budget = budgetOf(s.machine.Memory, s.policy, s.memoryLimit())
	s.exempt = storesOf(s.refusals(), s.policy)
	if in.Session.PrefillDevice {
		s.contenders = contendersOf(s.machine, s.policy)
	}
	s.plan.Figures = s.firstFigures()
	s.sayBudget()
	return s
}

// Context is the length of the context, in tokens, that a value of the parameter stands for with a model that was made for
// so many.
func Context(value int64, own int, p Policy) int {
	switch value {
	case params.Auto:
		return min(p.ContextDefault, own)
	case 0:
		return own
	}
	return int(value)
}

// width is the routing width a person set, or 0 for the model's own.
func (s *state) width() int {
	if n := s.set.Int("n-expert-used"); n != params.Auto {
		return int(n)
	}
	return 0
}

// memoryLimit is what a person lets the run hold, or 0.
func (s *state) memoryLimit() int64 {
	if n := s.set.Int("memory"); n != params.Auto {
		return n
	}
	return 0
}

// chooseContext is the first decision, since everything else is priced at it. It is never read from the model's training
// length unless a person asks: the buffers grow with it.
func (s *state) chooseContext() int {
	n := Context(s.set.Int("ctx-size"), s.Model.Context, s.policy)
	if s.byHand("ctx-size") {
		s.decide("ctx-size", s.set.Text("ctx-size"), Operator, "", "")
		return n
	}
	s.decide("ctx-size", text(n), FromPolicy,
		"nobody asked for a length: the default of "+count(s.policy.ContextDefault)+" tokens (policy), or the model's own where that is less",
		"Room for "+count(n)+" tokens of prompt and answer together")
	return n
}

// finish closes the plan: what was set by hand and no stage spoke of is listed, and the set stands for itself.
func (s *state) finish() Plan {
	s.predict()
	s.sayPins()
	for _, name := range []string{"auto", "plan-only", "plan-json"} { // a plan is not planned again
		if err := s.set.Put(name, "off", params.FromPlan); err != nil {
			panic("plan: " + err.Error())
		}
	}
	s.plan.Params = s.set
	s.plan.Config = map[string]string{}
	for _, p := range params.All() {
		if p.Scope == params.Run && p.Name != "model" {
			s.plan.Config[p.Key()] = s.set.Text(p.Name)
		}
	}
	return s.plan
}
