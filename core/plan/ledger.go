package plan

import "strings"

// Ledger is one account of everything the run holds for its whole length, against two ceilings: what may be held, and what
// may be held exempt from reclaim.
type Ledger struct {
	Holdable Ceiling `json:"holdable"`
	Exempt   Ceiling `json:"exempt"`
	Rows     []Row   `json:"rows"`
}

// Ceiling is a limit in bytes, if it is known.
type Ceiling struct {
	Bytes int64  `json:"bytes"`
	Known bool   `json:"known"`
	Why   string `json:"why"`
}

// Row is one holder of memory.
type Row struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	Exempt int64  `json:"exempt"` // of which are charged to the second ceiling
	From   string `json:"from"`   // where the figure is from
	Kind   Kind   `json:"kind"`
	ByHand bool   `json:"by_hand,omitempty"` // the size was set by a person, and may exceed a ceiling
	Asked  bool   `json:"asked,omitempty"`   // a lock is asked for at run time, and none is counted as granted
}

// Kind is how a row is counted.
type Kind string

const (
	Fixed  Kind = "fixed"   // nothing chooses it
	Chosen Kind = "chosen"  // the plan did
	Room   Kind = "room"    // left free for pages of the file, and not held
	InTurn Kind = "in-turn" // held only while the cache has given up as much: in no total
)

// Total is what the rows hold together. A row in turn with the cache is not in it.
func (l Ledger) Total() (holdable, exempt int64) {
	for _, r := range l.Rows {
		if r.Kind != InTurn {
			holdable += r.Bytes
			exempt += r.Exempt
		}
	}
	return holdable, exempt
}

// Row finds one by its name, or is empty.
func (l Ledger) Row(name string) Row {
	for _, r := range l.Rows {
		if r.Name == name {
			return r
		}
	}
	return Row{Name: name}
}

// The rows of a ledger.
const (
	RowProgram = "program"
	RowContext = "context"
	RowCompute = "compute buffers"
	RowDevice  = "prefill device"
	RowSlots   = "prefill slots"
	RowDense   = "dense set"
	RowCache   = "expert cache"
)

// ledgerAndPrefill spends the memory, first without a prefill device and then with each that is worth one, and keeps the
// first that leaves decode what it had.
func ledgerAndPrefill(s *state) {
	if !s.streams {
		s.holdOnly()
		s.note("extra-offload", "none", Derived, "nothing streams, so no device computes streamed experts", "No device is asked to help with experts, as none is read from storage")
		return
	}
	s.armByHand()
	s.allocation = allocate(s, s.prefill)
	if s.declines() {
		return // the next stage says so
	}
	s.sayDense()
	s.armPrefill()
	s.plan.Ledger = s.allocation.ledger
	s.plan.Lanes, s.plan.Candidates = s.allocation.lanes, s.allocation.candidates
	s.sayLedger()
}

// holdOnly is the ledger of a run that streams nothing: context and buffers, and room for what stays mapped.
func (s *state) holdOnly() {
	a := allocation{state: s}
	a.open()
	if s.plan.Outcome == Resident {
		a.add(Row{Name: "model", Bytes: s.share.dense() + s.share.experts, From: "the model's file, mapped", Kind: Room})
	}
	s.allocation, s.plan.Ledger = a, a.ledger
}

// open starts a ledger with its ceilings and the rows that come off the top.
func (a *allocation) open() {
	s := a.state
	a.ledger.Holdable = Ceiling{s.budget.usable, s.budget.known, s.budget.why}
	a.ledger.Exempt = Ceiling{s.exempt.total, s.exempt.totalKnown, "of what may be held exempt from reclaim, less what already is and a margin"}
	if !s.exempt.totalKnown {
		a.ledger.Exempt.Why = s.machine.Memory.ExemptTotal.From()
	}
	f, origin := &s.plan.Figures, "projected for this model, context and width"
	if s.projection().Width == 0 {
		origin = "derived from the model's shape, meant to be too high, as nothing was projected" + from(s.Placement.Projection.Why)
	}
	a.add(Row{Name: RowProgram, Bytes: s.policy.Program, From: "the program itself and its libraries (policy)", Kind: Fixed})
	a.add(Row{Name: RowContext, Bytes: f.Context, From: origin + "; keys in " + s.set.Text("cache-type-k") + ", values in " + s.set.Text("cache-type-v"), Kind: Fixed})
	a.add(Row{Name: RowCompute, Bytes: f.Compute, From: origin, Kind: Fixed})
}

func (a *allocation) add(r Row) {
	if r.Kind != InTurn {
		a.left -= r.Bytes
		a.exemptLeft -= r.Exempt
	}
	a.ledger.Rows = append(a.ledger.Rows, r)
}

// sayLedger reports the account in one line.
func (s *state) sayLedger() {
	held, exempt := s.plan.Ledger.Total()
	var rows []string
	for _, r := range s.plan.Ledger.Rows {
		word := r.Name + " " + size(r.Bytes)
		if r.Kind == InTurn {
			word += " in turn with the cache"
		}
		rows = append(rows, word)
	}
	s.plan.Figures.HeldTotal, s.plan.Figures.ExemptTotal = held, exempt
	value, source, of := size(held), Derived, " of "+size(s.budget.usable)+" that may be held"
	if !s.budget.known {
		source, of = Unprobed, ", and what may be held was not measured"
	}
	lockable := ""
	if s.exempt.totalKnown {
		lockable = size(exempt) + " of " + size(s.exempt.total) + " that may be held exempt from reclaim"
	}
	s.note("ledger", value, source, because(strings.Join(rows, ", ")+": "+size(held)+of, lockable), size(held)+" of memory in use"+of)
}
