package plan

// Prediction is what a token is expected to take, to be held against what it took.
type Prediction struct {
	Known     bool    `json:"known"`
	PerToken  float64 `json:"per_token"` // seconds
	Compute   float64 `json:"compute"`   // of it, what sweeping memory takes
	Read      float64 `json:"read"`      // what reading experts takes
	Refault   float64 `json:"refault"`   // what reading dropped pages of a mapping takes
	Fastest   float64 `json:"fastest"`   // no token is faster: the larger of its reads at the drive's best and its computing
	Bound     float64 `json:"bound"`     // the file left mapped with nothing resident; 0 where it has no price
	HitRate   float64 `json:"hit_rate"`  // credited
	HitSource Source  `json:"hit_source"`
	Missed    int64   `json:"missed"`  // bytes read
	Missing   string  `json:"missing"` // the measurement a prediction was owed, or ""
}

// Credit is what this model's cache did on this machine before. The zero Credit is no history.
type Credit struct {
	Runs       int     `json:"runs"`
	CacheBytes int64   `json:"cache_bytes"` // that the runs had
	HitRate    float64 `json:"hit_rate"`    // that they measured, in bytes

	LockRefused bool  `json:"lock_refused"` // the latest run that asked for locked memory was refused some
	CacheLocked int64 `json:"cache_locked"` // what it was granted for its cache
	DenseLocked int64 `json:"dense_locked"` // and for its dense set
}

// historic says whether there is a history to credit a cache by. That of a cache which held everything says nothing of less.
func (s *state) historic() bool {
	return s.History.Runs > 0 && s.History.CacheBytes > 0 && s.History.CacheBytes < s.share.experts
}

// credited is the hit rate a cache of so many bytes is credited with. Without history it is linear in the share of the
// experts held, which is pessimistic: routing has strong locality. With it, it is a straight line from nothing to what was
// measured and another from there to everything.
func (s *state) credited(cache int64) float64 {
	experts := float64(s.share.experts)
	if cache < s.share.cycle || experts == 0 {
		return 0
	}
	held := min(1, float64(cache)/experts)
	h := s.History
	at := float64(h.CacheBytes) / experts
	if !s.historic() {
		return held
	}
	if held <= at {
		return h.HitRate * held / at
	}
	return h.HitRate + (1-h.HitRate)*(held-at)/(1-at)
}

// predict prices the run as it was decided. A term without a price leaves the run without a prediction.
func (s *state) predict() {
	p := &s.plan.Prediction
	compute := s.hostRate().of(float64(s.share.swept())).plus(s.placedTime())
	total := compute
	p.HitSource = Derived
	var read, refault, best term
	switch {
	case s.streams && !s.budget.known:
		total = total.plus(term{missing: "what this process may hold"})
	case s.streams:
		p.HitRate = s.credited(s.allocation.cache)
		if s.historic() {
			p.HitSource = Measured
		}
		p.Missed = int64((1-p.HitRate)*float64(s.share.cycle) + 0.5)
		read = s.driveRate().of(float64(p.Missed))
		best = price{s.curve().best, s.driveRate().missing}.of(float64(p.Missed))
		if !s.allocation.denseHeld {
			refault = s.refaults()
		}
		total = s.together(compute, read).plus(refault)
	case s.plan.Outcome == Declined, s.classify() != Fits:
		refault = s.leftMapped()
		total = compute.plus(refault)
	}
	bound := compute.plus(s.leftMapped())
	p.Bound = bound.seconds
	p.Compute, p.Read, p.Refault = compute.seconds, read.seconds, refault.seconds
	p.PerToken, p.Missing, p.Known = total.seconds, total.missing, total.missing == ""
	if p.Known {
		p.Fastest = max(best.seconds, compute.seconds)
	}
	s.plan.Figures.Missed = p.Missed
	s.plan.Figures.HitRate = p.HitRate
	s.sayPrediction()
}

// together is reading and computing: at once, the longer of the two; in turns, their sum.
func (s *state) together(compute, read term) term {
	sum := compute.plus(read)
	if sum.missing == "" && s.overlaps() {
		sum.seconds = max(compute.seconds, read.seconds)
	}
	return sum
}

// placedTime is what the layers on devices take: their sweep at the slowest device's rate, and the crossings of every layer
// whose experts stayed behind.
func (s *state) placedTime() term {
	if s.share.placed == 0 {
		return term{}
	}
	var total term
	all := wholeModel(s.Model, s.width()).swept() - s.share.swept()
	for _, given := range s.Placement.Devices {
		d, _ := s.machine.Device(given.Name)
		rate := price{d.ReadRate.Or(0), missing(d.ReadRate.Known(), "the one-token matmul of device "+d.Name)}
		t := rate.of(float64(all))
		crossing, priced := d.Crossing.Get()
		t = t.plus(term{float64(s.policy.CrossingsPlaced*s.share.layers) * crossing, missing(priced || s.share.layers == 0, "the price of a graph crossing to device "+d.Name)})
		if t.missing != "" {
			return t
		}
		if t.seconds > total.seconds {
			total = t
		}
	}
	if len(s.Placement.Devices) == 0 {
		return term{missing: "a measurement of the devices set by hand"}
	}
	return total
}

func (s *state) sayPrediction() {
	p := s.plan.Prediction
	if !p.Known {
		topic := "unpredicted"
		if s.hostRate().missing != "" {
			topic = "unmeasured-compute"
		}
		s.note(topic, "-", Unprobed, "no prediction: it is owed "+p.Missing, "How fast this will be cannot be said: it is owed "+p.Missing)
		return
	}
	how := "computing " + took(p.Compute)
	if p.Read > 0 {
		how += ", reading " + size(p.Missed) + " of missed experts " + took(p.Read) + map[bool]string{true: " at the same time", false: " in turn"}[s.overlaps()]
	}
	if p.Refault > 0 {
		how += ", reading dropped pages again " + took(p.Refault)
	}
	bound := ""
	if p.Bound > 0 {
		bound = "left mapped with nothing resident it would be " + took(p.Bound)
	}
	brief := "About " + pace(1/p.PerToken)
	if p.PerToken > 1.02*p.Fastest {
		brief += ", and no more than " + pace(1/p.Fastest)
	}
	s.note("prediction", took(p.PerToken), Derived, because(how, "no token is faster than "+took(p.Fastest), bound),
		brief)
}
