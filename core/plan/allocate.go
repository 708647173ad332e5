package plan

import (
	"slices"
)

// Lane is one place a group of weights may be, and what a token then costs there.
type Lane struct {
	Group   string  `json:"group"`
	Where   string  `json:"where"`
	Seconds float64 `json:"seconds"` // per token; 0 where it has no price
	Missing string  `json:"missing"` // the measurement it was owed, or ""
}

// Candidate is something memory may be spent on.
type Candidate struct {
	Name    string  `json:"name"`
	Bytes   int64   `json:"bytes"` // all of it
	Part    bool    `json:"part"`  // whether less than all may be taken
	Saves   float64 `json:"saves"` // seconds per token, all of it taken; 0 where it has no price
	PerByte float64 `json:"per_byte"`
	Taken   int64   `json:"taken"`
	Missing string  `json:"missing"` // why it has no price, or ""
}

// The groups are what a token reads alike: whole, by the row, or a few slices of many.
const (
	groupWhole   = "dense, read whole"
	groupRows    = "tables, read by the row"
	groupExperts = "experts"
)

// The places a group may be.
const (
	held     = "held"
	fallen   = "mapped, once pressure has dropped it"
	cached   = "cached, all of them"
	streamed = "streamed, no cache"
)

// The candidates, in the order they come in where one has no price: that of what a byte is worth everywhere it was
// measured. The dense set is read whole on every token; a cache below its floor hits nothing.
const (
	candidateDense = "dense set"
	candidateFloor = "cache, one token cycle"
	candidateCache = "cache, beyond it"
)

// allocation is one way to spend the memory.
type allocation struct {
	state  *state
	arming *arming // the prefill device it pays for, or nil

	ledger     Ledger
	lanes      []Lane
	candidates []Candidate

	left       int64 // of what may be held
	exemptLeft int64 // of what may be held exempt; meaningful where the total is known

	denseHeld bool
	denseRoom int64 // what there was for it
	cache     int64
	lock      lock
	lockable  int64 // of the cache, where it is known
}

// steps are how an allocation is made, in order. The unit throughout is seconds per token: a token reads every weight it
// needs once, so storage, memory and devices are all priced by the bytes they sweep.
var steps = []struct {
	name string
	run  func(*allocation)
}{
	{"fixed rows", (*allocation).fixedRows},
	{"price every lane", (*allocation).priceLanes},
	{"candidates", (*allocation).makeCandidates},
	{"rank", (*allocation).rank},
	{"spend", (*allocation).spend},
}

// allocate spends what may be held, a prefill device charged first if there is one.
func allocate(s *state, device *arming) allocation {
	a := allocation{state: s, arming: device, left: s.budget.usable, exemptLeft: s.exempt.total}
	for _, step := range steps {
		step.run(&a)
	}
	return a
}

// fixedRows come off the top, because nothing chooses them: the context, the buffers, a device that was armed before, and a
// cache whose size a person set.
func (a *allocation) fixedRows() {
	a.open()
	if a.arming != nil {
		a.charge(*a.arming)
	}
	if s := a.state; s.byHand("cache-mb") {
		a.cache = s.set.Int("cache-mb")
	}
}

// priceLanes prices every legal lane of every group.
func (a *allocation) priceLanes() {
	s := a.state
	host, drive, refault := s.hostRate(), s.driveRate(), s.refaultRate()
	whole, rows, cycle := float64(s.share.whole.PerToken), float64(s.share.rows.PerToken), float64(s.share.cycle)
	a.lane(groupWhole, held, host.of(whole))
	a.lane(groupWhole, fallen, host.of(whole), refault.of(whole))
	for _, d := range s.machine.Devices {
		a.lane(groupWhole, "on device "+d.Name, s.deviceLane(d, whole)...)
	}
	a.lane(groupRows, held, host.of(rows))
	a.lane(groupRows, fallen, host.of(rows), refault.of(rows))
	a.lane(groupExperts, cached, host.of(cycle))
	a.lane(groupExperts, streamed, host.of(cycle), drive.of(cycle))
	a.lane(groupExperts, fallen, host.of(cycle), refault.of(cycle))
}

// lane adds up the terms of a lane. One without a price leaves the whole without: an unmeasured number never makes a lane
// cheap.
func (a *allocation) lane(group, where string, terms ...term) {
	l := Lane{Group: group, Where: where}
	for _, t := range terms {
		l.Seconds += t.seconds
		if l.Missing == "" {
			l.Missing = t.missing
		}
	}
	if l.Missing != "" {
		l.Seconds = 0
	}
	a.lanes = append(a.lanes, l)
}

// seconds is a lane's price.
func (a *allocation) seconds(group, where string) term {
	for _, l := range a.lanes {
		if l.Group == group && l.Where == where {
			return term{l.Seconds, l.Missing}
		}
	}
	panic("plan: no lane " + where + " of " + group)
}

// makeCandidates lists what the memory may go to and what each saves against the lane the group is in otherwise. The dense
// set is one: its parameter moves all of it.
func (a *allocation) makeCandidates() {
	s := a.state
	saved := func(group, worse, better string) term {
		return minus(a.seconds(group, worse), a.seconds(group, better))
	}
	dense := saved(groupWhole, fallen, held).plus(saved(groupRows, fallen, held))
	all := saved(groupExperts, streamed, cached)
	floor, most := a.floor(), max(a.floor(), ceilMiB(s.share.experts))
	a.candidate(candidateDense, s.share.dense(), false, dense)
	a.candidate(candidateFloor, floor, false, all.times(s.credited(floor)))
	a.candidate(candidateCache, most-floor, true, all.times(s.credited(most)-s.credited(floor)))
}

// floor is the least cache worth having: a token cycle, in whole MiB.
func (a *allocation) floor() int64 { return ceilMiB(a.state.share.cycle) }

func (a *allocation) candidate(name string, bytes int64, part bool, saves term) {
	c := Candidate{Name: name, Bytes: bytes, Part: part, Saves: saves.seconds, Missing: saves.missing}
	if bytes > 0 {
		c.PerByte = c.Saves / float64(bytes)
	}
	a.candidates = append(a.candidates, c)
}

// rank orders the candidates by seconds saved per byte. What has no price cannot justify a move: then the order stays. The
// cache's floor stays before the rest of it, which may save less per byte where history says that the first of a cache
// serves most.
func (a *allocation) rank() {
	for _, c := range a.candidates {
		if c.Missing != "" {
			return
		}
	}
	dense, floor, beyond := a.candidates[0], a.candidates[1], a.candidates[2]
	switch {
	case dense.PerByte >= floor.PerByte:
	case dense.PerByte >= beyond.PerByte:
		a.candidates = []Candidate{floor, dense, beyond}
	default:
		a.candidates = []Candidate{floor, beyond, dense}
	}
}

// spend goes down the list. Where nobody knows what may be held, nothing is.
func (a *allocation) spend() {
	s := a.state
	a.prepareLock()
	a.left -= a.cache
	for i := range a.candidates {
		switch c := &a.candidates[i]; c.Name {
		case candidateDense:
			a.spendDense(c)
		case candidateFloor:
			if s.budget.known && !s.byHand("cache-mb") && c.Bytes > 0 && c.Bytes <= min(a.left, a.cacheCap()) {
				a.take(c, c.Bytes)
				a.cache = c.Bytes
			}
		case candidateCache:
			if a.cache > 0 && !s.byHand("cache-mb") {
				more := floorMiB(max(0, min(c.Bytes, a.left, a.cacheCap()-a.cache)))
				a.take(c, more)
				a.cache += more
			}
		}
	}
	a.left += a.cache // the row takes it
	a.settleLock()
	a.add(Row{Name: RowCache, Bytes: a.cache, Exempt: a.cacheExempt(), From: "what is left", Kind: Chosen,
		ByHand: s.byHand("cache-mb"), Asked: a.lock == lockAsked && a.cache > 0})
	order := []string{RowProgram, RowContext, RowCompute, RowDevice, RowSlots, RowDense, RowCache}
	slices.SortStableFunc(a.ledger.Rows, func(x, y Row) int { return slices.Index(order, x.Name) - slices.Index(order, y.Name) })
}

func (a *allocation) take(c *Candidate, bytes int64) {
	c.Taken = bytes
	a.left -= bytes
}

// spendDense holds the set whole or leaves it mapped. Mapped, it is given what is left as room for its pages: it was next
// in line, so a byte is worth more there than in what follows.
func (a *allocation) spendDense(c *Candidate) {
	s := a.state
	row := Row{Name: RowDense, From: "the model's file", Kind: Chosen, ByHand: s.byHand("dense-weights")}
	a.denseRoom = max(0, a.left)
	switch ours := s.dense == anon || s.dense == pinned; {
	case ours && (row.ByHand || s.budget.known && c.Bytes <= a.left):
		a.denseHeld, c.Taken, row.Bytes = true, c.Bytes, c.Bytes
		if s.dense == pinned {
			row.Exempt = c.Bytes
		}
	default:
		row.Kind, row.Bytes, row.ByHand = Room, min(c.Bytes, a.denseRoom), false
	}
	a.add(row)
}
