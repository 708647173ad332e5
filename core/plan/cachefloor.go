package plan

import "github.com/bmoe/bmoe/core/params"

// typed is a parameter as a person types it. A renamed one fails a test and never misleads.
func typed(name string) string { return params.Flag(name) }

// declines says whether an allocation without a cache leaves nothing worth running. Under the token cycle a cache evicts
// what the same token still needs, so it is taken away and the experts are streamed uncached, on the price of that against
// the mapping. A drive whose rate was never measured has no such price.
func (s *state) declines() bool {
	a := &s.allocation
	if a.cache > 0 || !s.budget.known || s.byHand("cache-mb") || s.byHand("moe-stream") {
		return false
	}
	uncached, left := s.uncached(), s.leftMapped()
	s.plan.Figures.Uncached, s.plan.Figures.Mapped = uncached.seconds, left.seconds
	return uncached.missing != "" || left.missing == "" && left.seconds <= uncached.seconds
}

// uncached is a token's reads with no cache: what the drive takes for a cycle and, where the dense set stays mapped, its
// pages again. The computing is the same either way.
func (s *state) uncached() term {
	reads := s.driveRate().of(float64(s.share.cycle))
	if !s.allocation.denseHeld {
		return reads.plus(s.refaults())
	}
	return reads
}

// refaults is the dense set's pages read again.
func (s *state) refaults() term {
	return s.refaultRate().of(float64(s.share.whole.PerToken + s.share.rows.PerToken))
}

// leftMapped is the same where the whole file is left mapped and nothing is resident.
func (s *state) leftMapped() term {
	return s.refaultRate().of(float64(s.share.swept()))
}

// cacheFloor sets the cache, or turns it off, or declines.
func cacheFloor(s *state) {
	if !s.streams {
		return
	}
	a, f := &s.allocation, &s.plan.Figures
	f.Floor = a.floor()
	if s.declines() {
		s.decline()
		return
	}
	if s.byHand("cache-mb") {
		s.decide("cache-mb", s.set.Text("cache-mb"), Operator, "", "")
	}
	switch pinned := s.byHand("cache-mb"); {
	case pinned && a.cache > 0 && a.cache < a.floor():
		s.note("cache-floor", size(s.share.cycle), Derived, "a token demands "+size(s.share.cycle)+" of experts, and the "+size(a.cache)+
			" set by hand are less: the cache will evict what the same token still needs and hit nothing",
			"The cache you set is too small to help: one token needs "+size(s.share.cycle))
	case pinned:
	case !s.budget.known:
		s.keep("cache-mb", "what may be held was not measured: the session sizes the cache from what it finds",
			"The memory for experts is settled when the model is opened")
	case a.cache == 0:
		s.cacheOff()
	default:
		s.sayCache()
	}
	f.Cache = a.cache
	if s.budget.known {
		s.sayLock()
	}
}

func (s *state) cacheOff() {
	f := &s.plan.Figures
	against := "the mapping has no price, and " + took(f.Uncached) + " per token has"
	if f.Mapped > 0 {
		against = "against " + took(f.Mapped) + " for the file left mapped"
	}
	s.note("cache-off", size(s.share.cycle), Derived, "a token demands "+size(s.share.cycle)+" of experts and less than that is left: a smaller cache would hit nothing and cost its memory",
		"There is too little memory to keep experts: one token needs "+size(s.share.cycle))
	s.decide("cache-mb", "0", Derived, "the experts stream uncached: "+took(f.Uncached)+" of reads per token, "+against,
		"No memory is kept for experts, and each is read when it is needed: "+size(s.share.cycle)+" per token")
}

func (s *state) sayCache() {
	a, f := &s.allocation, &s.plan.Figures
	f.Held = float64(min(a.cache, s.share.experts)) / float64(s.share.experts)
	f.HitRate = s.credited(a.cache)
	s.note("cache-floor", size(s.share.cycle), Derived, "a token demands "+size(s.share.cycle)+" of experts; a cache below that hits nothing, and one above it is worth having however small it looks",
		"One token needs "+size(s.share.cycle)+" of experts, and the cache holds more")
	limit := "what is left of " + size(s.budget.usable)
	switch {
	case a.cache >= s.share.experts:
		limit = "all of the experts"
	case a.lock == lockGranted && a.cache >= floorMiB(a.lockable):
		limit = "what can be locked"
	}
	source := "linearly in the share held"
	if s.historic() {
		source = "from " + counted(s.History.Runs, "run") + " of this model here"
	}
	s.decide("cache-mb", mib(a.cache), Derived, "the cache is "+limit+": "+size(a.cache)+", "+percent(f.Held)+" of "+size(s.share.experts)+
		" of experts, credited with "+percent(f.HitRate)+" hits "+source,
		size(a.cache)+" of memory keep experts between tokens, "+percent(f.Held)+" of them")
	if s.driveRate().missing != "" {
		s.note("cache-unpriced", size(a.cache), Unprobed, "what a hit saves has no price while the drive's read rate is not measured: the cache is what is left, by default",
			"How much the cache saves was not measured")
	}
}

// decline is the plan for a machine with no room for a cycle and no price for streaming without: the file stays mapped and
// nothing is held. Its cost is that, not the cost of the allocation it refuses.
func (s *state) decline() {
	f := &s.plan.Figures
	why := "and the drive's read rate was never measured" + from(s.machine.Storage.From) + ", so streaming without a cache has no price"
	if f.Uncached > 0 {
		why = "and " + took(f.Uncached) + " of uncached reads per token are no better than " + took(f.Mapped) + " for the file left mapped"
	}
	s.streams, s.prefill = false, nil
	s.plan.Outcome = Declined
	s.note("declined", size(s.share.cycle), Derived, "less than a token cycle of "+size(s.share.cycle)+" is left for a cache, "+why+": the file stays mapped and nothing is held",
		"Nothing is streamed: one token needs "+size(s.share.cycle)+" and there is less")
	s.decide("moe-stream", "off", Derived, "declined: no room for a token cycle of "+size(s.share.cycle), "The model is left to the system's own cache")
	s.note("extra-offload", "none", Derived, "nothing streams, so no device computes streamed experts", "No device is asked to help with experts, as none is read from storage")
	s.holdOnly()
}
