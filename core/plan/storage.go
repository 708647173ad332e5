package plan

import (
	"cmp"
	"slices"

	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/params"
)

// reads is what the curve says about the model's slices.
type reads struct {
	known  bool
	size   int64   // bytes of the point that applies
	lanes  int     // chosen
	rate   float64 // with them
	best   float64 // over all lanes
	spread float64 // of the point chosen
}

// curve picks the point of the storage curve. The size is the one nearest to the model's slice, by ratio. The lanes are the
// most within the tolerance of the best rate: the probe reads aggregate throughput, and a decode also waits for the slice it
// needs next, so inside the probe's own resolution a queue that drains sooner wins.
func (s *state) curve() reads {
	points := possible(s.machine.Storage.Curve)
	if len(points) == 0 || s.share.slice == 0 {
		return reads{}
	}
	far := func(r machine.Rate) float64 {
		return max(float64(r.Size)/float64(s.share.slice), float64(s.share.slice)/float64(r.Size))
	}
	nearest := slices.MinFunc(points, func(a, b machine.Rate) int { return cmp.Or(cmp.Compare(far(a), far(b)), cmp.Compare(b.Size, a.Size)) }).Size
	found := reads{known: true, size: nearest}
	for _, p := range points {
		if p.Size == nearest {
			found.best = max(found.best, p.Rate)
		}
	}
	at := slices.Clone(points)
	at = slices.DeleteFunc(at, func(r machine.Rate) bool { return r.Size != nearest })
	slices.SortFunc(at, func(a, b machine.Rate) int { return cmp.Compare(b.Lanes, a.Lanes) }) // most lanes first
	chosen := at[slices.IndexFunc(at, func(r machine.Rate) bool { return r.Rate >= found.best*(1-s.policy.LaneTolerance) })]
	if s.byHand("io-threads") { // the point that is nearest from below, or else the one with fewest lanes
		chosen = at[len(at)-1]
		if i := slices.IndexFunc(at, func(r machine.Rate) bool { return int64(r.Lanes) <= s.set.Int("io-threads") }); i >= 0 {
			chosen = at[i]
		}
	}
	found.lanes, found.rate, found.spread = chosen.Lanes, chosen.Rate, chosen.Spread
	return found
}

// storageKnobs sets how experts are read.
func storageKnobs(s *state) {
	if !s.streams {
		return
	}
	s.sayLanes()
	s.sayDirect()
	s.sayMapping()
	s.sayOverlap()
}

// possible are the points a run can be at: a saved machine may have been read on more lanes than a run has.
func possible(points []machine.Rate) []machine.Rate {
	lanes, _ := params.Lookup("io-threads")
	return slices.DeleteFunc(slices.Clone(points), func(r machine.Rate) bool { return float64(r.Lanes) > lanes.Max })
}

func (s *state) sayLanes() {
	c := s.curve()
	f := &s.plan.Figures
	f.Rate, f.BestRate, f.Spread, f.PointSize = c.rate, c.best, c.spread, c.size
	if !c.known {
		s.note("unmeasured-storage", "-", Unprobed, "the drive's read rate was not measured"+from(s.machine.Storage.From)+": no read has a price",
			"How fast the drive reads was not measured")
		s.keep("io-threads", "no curve to choose from: the default stays", s.set.Text("io-threads")+" reads at a time, as the drive was not measured")
		return
	}
	s.decide("io-threads", count(c.lanes), Measured, "reads of "+size(c.size)+" (slices are "+size(s.share.slice)+") reach "+speed(c.rate)+" with "+counted(c.lanes, "lane")+
		", within "+percent(s.policy.LaneTolerance)+" (policy) of the best, "+speed(c.best)+"; the most lanes inside that wait least",
		count(c.lanes)+" reads at a time, at which the drive gives "+speed(c.rate))
	s.note("storage-rate", speed(c.rate), Measured, speed(c.rate)+" for slices of "+size(s.share.slice)+from(s.machine.Storage.From), "The drive reads experts at "+speed(c.rate))
	if c.spread > s.policy.SpreadQuoted {
		s.note("storage-spread", spread(c.spread), Measured, "repeats of that rate differ by "+spread(c.spread)+", more than "+spread(s.policy.SpreadQuoted)+
			" (policy): every figure that follows from it is as unsteady", "The drive's speed was unsteady, fastest over slowest "+spread(c.spread)+", and so is the prediction")
	}
}

func (s *state) sayDirect() {
	f := s.machine.Storage.Direct
	switch {
	case machine.IsYes(f):
		s.decide("odirect", "on", Measured, "reads past the file cache give the right bytes here"+from(f.From()), "Experts are read past the system's file cache, keeping it out of the way")
	case machine.IsNo(f):
		s.decide("odirect", "off", Measured, "reads past the file cache do not work on this path"+from(f.From()), "Experts are read through the system's file cache, the only way that works here")
	default:
		s.keep("odirect", "whether reads past the file cache work here was not tried"+from(f.From())+": the default stays, and a run verifies it by reading back",
			"Whether reading past the system's file cache works is found out when the model is opened")
	}
}

// sayMapping says what becomes of the mapping of the file. With the dense set in memory of the run nothing is left in it,
// and it is released after loading on every machine; with the dense set in it, it stays, whatever it costs. The probe
// answers yes or nothing: a no from an instrument that missed a known yes is no evidence.
func (s *state) sayMapping() {
	m := s.machine.Storage
	cost := "whether a live mapping slows reads was not seen, which is no evidence that it does not"
	source := Unprobed
	if machine.IsYes(m.MappingSerialises) {
		cost, source = "a live mapping slows reads here"+from(m.MappingSerialises.From()), Measured
	}
	if m.MappedRate.Known() && m.UnmappedRate.Known() {
		cost += ": " + known(m.MappedRate) + " with it and " + known(m.UnmappedRate) + " without"
	}
	if s.allocation.denseHeld {
		s.decide("release-mmap", "off", Derived, "there is nothing left to release: with the dense set held, the loader unmaps the file by itself",
			"The file's mapping is gone after loading by itself")
		s.note("mapping", "released", Derived, "no weight that is used is left in the mapping of the file, so it is released after loading; "+cost,
			"The file is not kept mapped once what every token needs is in memory")
		return
	}
	s.decide("release-mmap", "off", source, s.unreleasable(), "The file stays mapped, as "+s.mappedUse())
	s.note("mapping", "kept", source, "the dense set is used out of the mapping of the file, so it stays; "+cost, "The file stays mapped, as what every token needs is used from there")
}

// unreleasable is why a mapping that is in use is not released.
func (s *state) unreleasable() string {
	if s.Model.TiedHead() {
		return "the output head is the token embedding, which is used out of the mapping"
	}
	if s.Model.MTPLayers > 0 {
		return "the layers that predict further tokens are used out of the mapping"
	}
	return "the " + size(s.share.dense()) + " that every token needs are used out of the mapping"
}

func (s *state) mappedUse() string {
	return size(s.share.dense()) + " that every token needs are used from there"
}

// overlaps says whether experts in memory are computed while others are read: yes, unless a measurement here says that
// taking turns is faster.
func (s *state) overlaps() bool {
	if s.byHand("overlap") {
		return s.set.Bool("overlap")
	}
	return s.machine.Storage.OverlapGain.Or(1) >= 1
}

func (s *state) sayOverlap() {
	gain, ok := s.machine.Storage.OverlapGain.Get()
	switch {
	case !ok:
		s.decide("overlap", "on", FromPolicy, "armed whenever experts stream; nothing measured here says otherwise", "Experts in memory are computed while the others are read")
	case gain >= 1:
		s.decide("overlap", "on", Measured, "computing while reading was "+times(gain)+" as fast as taking turns", "Experts in memory are computed while the others are read, "+times(gain)+" as fast as in turns")
	default:
		s.decide("overlap", "off", Measured, "computing while reading was "+times(gain)+" as fast as taking turns", "Reading and computing take turns: both at once was "+times(gain)+" as fast")
	}
}

// devicesListed names every device of the run, and none it does not use: one that is merely registered costs crossings.
func devicesListed(s *state) {
	var names []string
	switch {
	case s.byHand("device"):
		s.decide("device", s.set.Text("device"), Operator, "", "")
		return
	case s.share.placed > 0 && !s.placedByHand():
		for _, d := range s.Placement.Devices {
			names = append(names, d.Name)
		}
	}
	if s.prefill != nil && !slices.Contains(names, s.prefill.name) {
		names = append(names, s.prefill.name)
	}
	if len(names) == 0 {
		s.note("device", "none", Derived, "the run uses none of "+count(len(s.machine.Devices))+" devices and lists none: a device that is merely listed costs crossings of the graph",
			"The processor does all the work")
		s.sayNeverClaimed()
		return
	}
	listed := joined(names)
	s.decide("device", listed, Derived, "the devices this run uses, and no other: one that is merely listed costs crossings of the graph", "The run uses "+listed)
	s.sayNeverClaimed()
}

func joined(names []string) string {
	out := ""
	for i, n := range names {
		if i > 0 {
			out += ","
		}
		out += n
	}
	return out
}

// sayNeverClaimed closes the plan with what no plan does.
func (s *state) sayNeverClaimed() {
	for _, p := range params.All() {
		if p.Lossy && !s.byHand(p.Name) {
			s.note("lossy", "none", FromPolicy, "nothing that changes what the model answers is armed by a plan: "+p.Flag()+" stays as the model has it",
				"Nothing that changes the model's answer is turned on")
			return
		}
	}
}
