package plan

import "github.com/bmoe/bmoe/core/machine"

// The ways the dense set is held, as the parameter spells them.
const (
	mapped = "mmap"
	warmed = "warm"
	anon   = "anon"
	pinned = "pinned"
)

// account is a source with its two texts, for a decision that is made before it can be said.
type account struct {
	source        Source
	reason, brief string
}

// densePolicy chooses how the dense set would be held, from what a reclaim costs here. Whether there is room for it is the
// ledger's answer. It is pinned whole or not at all: a set pinned part way is reclaimed from the part that was refused, on
// every token. A limit that is fatal widens the margin and leaves nothing mapped: the kernel owes a mapping nothing.
func densePolicy(s *state) {
	if !s.streams {
		return
	}
	dense := s.share.dense()
	pressure, known := s.machine.Memory.Pressure.Get()
	switch {
	case s.byHand("dense-weights"):
		s.dense = s.set.String("dense-weights")
		s.denseWhy = account{source: Operator}
	case !s.budget.known:
		s.dense = mapped
		s.denseWhy = account{Unprobed, "what may be held was not measured, so nothing is: the dense set stays mapped",
			"What every token needs is left to the system's cache, as nobody measured the memory"}
	case !known:
		s.dense = anon
		s.denseWhy = account{Unprobed, "what pressure does here is not known" + from(s.machine.Memory.Pressure.From()) + ": the default stays",
			"The " + size(dense) + " that every token needs are held in memory"}
	case pressure != machine.Compresses:
		s.dense = anon
		s.denseWhy = account{Measured, s.budget.pressure + ": " + size(dense) + " as ordinary memory stay where they are, and a mapping would be dropped first",
			"The " + size(dense) + " that every token needs are held in memory"}
	case !s.exempt.dense:
		s.dense = anon
		s.denseWhy = account{sourceOf(s.machine.Memory.ExemptStore.Known()), "pressure compresses and no store that is exempt from it is known" +
			from(s.machine.Memory.ExemptStore.From()) + ": " + size(dense) + " are ordinary memory",
			"The " + size(dense) + " that every token needs are held in memory, which the system may compress"}
	case s.exempt.totalKnown && dense > s.exempt.total:
		s.dense = anon
		s.plan.Figures.Short = dense - s.exempt.total
		s.denseWhy = account{Derived, "pinned whole or not at all: " + size(dense) + " are " + size(s.plan.Figures.Short) + " more than the " +
			size(s.exempt.total) + " that may be held exempt from reclaim",
			"The " + size(dense) + " that every token needs are held in memory; the system protects only " + size(s.exempt.total)}
	default:
		s.dense = pinned
		s.denseWhy = account{Measured, "pressure compresses, and " + size(dense) + " fit whole in a store that is exempt from it" +
			from(s.machine.Memory.ExemptStore.From()),
			"The " + size(dense) + " that every token needs are held where the system may not take them back"}
	}
}

// sayDense says how the dense set is held once the ledger has answered.
func (s *state) sayDense() {
	a, dense := &s.allocation, s.share.dense()
	how, why := s.dense, s.denseWhy
	if (how == anon || how == pinned) && !a.denseHeld {
		how = mapped
		why = account{Derived, size(dense) + " do not fit whole in the " + size(a.denseRoom) + " left: the set stays mapped, and that room is left to it, since a byte " +
			"of it is worth more than a byte of cache",
			"The " + size(dense) + " that every token needs do not fit in " + size(a.denseRoom) + " and are read from the file again and again"}
	}
	s.decide("dense-weights", how, why.source, why.reason, why.brief)
	switch {
	case how == pinned && s.exempt.totalKnown:
		s.note("dense-pin", size(dense), Derived, size(dense)+" of "+size(s.exempt.total)+" that may be held exempt from reclaim",
			size(dense)+" of "+size(s.exempt.total)+" of protected memory go to what every token needs")
	case how == pinned:
		s.note("dense-pin", size(dense), Unprobed, "the exempt store publishes no total; if it runs out the remaining tensors are ordinary memory",
			size(dense)+" of protected memory go to what every token needs; how much there is is not published")
	case s.plan.Figures.Short > 0 && how == anon:
		s.note("dense-pin", size(s.plan.Figures.Short), Derived, "the exempt store is "+size(s.plan.Figures.Short)+" short of the dense set",
			"Protected memory is "+size(s.plan.Figures.Short)+" short of what every token needs")
	}
	if how != mapped && how != warmed && !s.machine.Storage.Refault.Known() {
		s.note("unmeasured-refault", "-", Unprobed, "what a page read again costs was not measured, so what holding the dense set saves has no price; it is held by default"+
			from(s.machine.Storage.Refault.From()),
			"What losing a piece of memory costs was not measured")
	}
}
