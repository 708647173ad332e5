package plan

import (
	"github.com/bmoe/bmoe/core/machine"
)

// budget is what this process may hold: the first of the ledger's two ceilings.
type budget struct {
	known    bool
	reading  int64 // what the machine says, before the margin
	reported int64 // what it reports as available, which the reading may differ from
	margin   int64 // left free
	share    float64
	usable   int64  // what the plan spends
	limit    int64  // what a person allowed, or 0
	why      string // how the reading was come by
	pressure string // why the margin is what it is
	source   Source
}

// budgetOf reads the memory facts. How much can be kept, measured by keeping it, beats the estimate from the compressor's
// own figures, which beats what is reported. The estimate holds only where pressure compresses: where it ends the process,
// what the neighbours could be squeezed down to is not room to take.
func budgetOf(m machine.Memory, p Policy, limit int64) budget {
	b := budget{limit: limit, source: Measured}
	b.reported = m.Available.Or(0)
	switch reported, known := m.Available.Get(); {
	case m.Keepable.Known():
		b.known, b.reading, b.why = true, m.Keepable.Or(0), "measured by holding it"
	case known && estimable(m):
		squeezed := squeezable(m)
		b.known, b.reading, b.source = true, reported+squeezed, Derived
		b.why = size(reported) + " reported available and " + size(squeezed) + " that " + size(m.IdleAnonymous.Or(0)) +
			" of idle memory gives when compressed " + times(m.CompressorRatio.Or(1))
	case known:
		b.known, b.reading, b.why = true, reported, "reported available"
	case limit > 0:
		b.known, b.reading, b.usable, b.source = true, limit, limit, Operator
		b.why, b.pressure = "allowed by hand, and nobody measured how much there is", "the limit is the margin"
		return b
	default:
		b.source, b.why = Unprobed, "nobody measured what this process may hold"+from(m.Available.From())
		return b
	}
	if total, ok := m.Total.Get(); ok {
		b.reading = min(b.reading, total)
	}
	b.share, b.pressure = marginOf(m.Pressure, p)
	b.margin = min(b.reading, max(int64(float64(b.reading)*b.share), p.MarginLeast))
	b.usable = b.reading - b.margin
	if limit > 0 {
		b.usable = min(b.usable, limit)
	}
	return b
}

// estimable says whether the facts behind the estimate are there. The machine's total is one: it bounds the estimate.
func estimable(m machine.Memory) bool {
	pressure, _ := m.Pressure.Get()
	return pressure == machine.Compresses && m.Total.Known() && m.CompressorRatio.Known() && m.IdleAnonymous.Known()
}

// squeezable is what compressing the idle memory at the rate achieved now would give: the bytes less what they shrink to.
func squeezable(m machine.Memory) int64 {
	return int64(float64(m.IdleAnonymous.Or(0)) * (1 - 1/m.CompressorRatio.Or(1)))
}

func marginOf(f machine.Fact[machine.Pressure], p Policy) (share float64, why string) {
	switch pressure, _ := f.Get(); pressure {
	case machine.Compresses:
		return p.MarginCompresses, "pressure compresses"
	case machine.Swaps:
		return p.MarginSwaps, "pressure swaps"
	case machine.Kills:
		return p.MarginKills, "pressure ends the process"
	}
	return p.MarginUnknown, "nobody knows what pressure does"
}

func (s *state) sayBudget() {
	b := s.budget
	if !b.known {
		s.note("budget", "-", Unprobed, b.why, "How much memory there is to use was not measured")
		return
	}
	margin := ""
	if b.margin > 0 {
		margin = "less " + size(b.margin) + " left free (" + percent(b.share) + " and at least " + size(s.policy.MarginLeast) +
			", policy, because " + b.pressure + ")"
	}
	limit := ""
	if b.limit > 0 && b.source != Operator {
		limit = "and no more than the " + size(b.limit) + " allowed by hand"
	}
	s.note("budget", size(b.usable), b.source,
		because(size(b.reading)+" may be held: "+b.why, margin, limit),
		size(b.usable)+" of memory to spend, of "+size(b.reading)+" this program may hold")
}

// stores is what may be held exempt from reclaim: the second ceiling, as the two facts it comes from. Each is net of what
// is already held so by anyone, and less the margin that is left to them.
type stores struct {
	dense bool // an exempt allocation exists, known

	totalKnown bool
	total      int64 // of everything held exempt
	lockKnown  bool
	lock       int64 // of what is locked where it already is
}

func storesOf(m machine.Memory, p Policy) stores {
	total, totalKnown := m.ExemptTotal.Get()
	lock, lockKnown := m.LockInPlace.Get()
	usable := func(bytes int64) int64 { return bytes - int64(float64(bytes)*p.LockMargin) }
	return stores{
		dense:      machine.IsYes(m.ExemptStore),
		totalKnown: totalKnown, total: usable(total),
		lockKnown: lockKnown, lock: usable(lock),
	}
}

// refusals are the memory facts with what an earlier run was refused taken off: a refusal is data, and the next plan asks for
// what was granted.
func (s *state) refusals() machine.Memory {
	m, h := s.machine.Memory, s.History
	if !h.LockRefused {
		return m
	}
	const why = "what an earlier run here was granted before the system refused"
	if total, known := m.ExemptTotal.Get(); known && h.CacheLocked+h.DenseLocked < total {
		m.ExemptTotal = machine.Known(h.CacheLocked+h.DenseLocked, why)
	}
	if lock, known := m.LockInPlace.Get(); !known || h.CacheLocked < lock {
		m.LockInPlace = machine.Known(h.CacheLocked, why)
	}
	s.machine.Memory = m
	return m
}

// wired says whether a total exists that a device which wires its buffers would take from. Where it holds neither the dense
// set nor a token cycle, nothing of this run is locked, so there is nothing to outbid.
func (s *state) wired() bool {
	return s.exempt.totalKnown && s.exempt.total >= min(s.share.dense(), ceilMiB(s.share.cycle))
}
