package plan

// widestGraph chooses how many tokens of a prompt are computed at once. Left alone the width follows the context, which
// makes the fastest prefill; but the buffers grow with it and are memory that the expert cache does not get. The rule is
// the widest graph whose buffers stay inside a share of what may be held, found by halving from the context.
//
// The buffers of a device that reads the prompt count where they come out of this memory too. Whether there is one is
// settled later, by the ledger, which narrows the graph for it.
func widestGraph(s *state) {
	width := s.context
	switch {
	case s.byHand("ubatch"):
		width = min(int(s.set.Int("ubatch")), s.context)
		s.decide("ubatch", text(width), Operator, "", "")
	case !s.widthRuled():
		missing := "what a token of width takes was not projected"
		if !s.budget.known {
			missing = "what may be held was not measured"
		}
		s.keep("ubatch", missing+", so the width keeps its default, the context of "+count(width)+" tokens",
			"The prompt is read "+count(width)+" tokens at a time, as nothing says what less would save")
	default:
		width = s.narrowed("")
		s.sayWidth(width, "")
	}
	s.useWidth(width)
}

// widthRuled says whether the rule has what it reads. A slope that was not measured decides nothing; where nothing at all
// was projected, an estimate that is meant to be too high stands in.
func (s *state) widthRuled() bool {
	return !s.byHand("ubatch") && s.budget.known && (s.projection().Width == 0 || s.projection().sloped())
}

// narrowed is the width by the rule, the buffers of a device counted if one is named.
func (s *state) narrowed(device string) int {
	width := s.context
	for s.buffers(width, device) > s.buffersAllowed() && width/2 >= s.policy.WidthLeast {
		width /= 2
	}
	return width
}

func (s *state) buffersAllowed() int64 {
	return int64(s.policy.ComputeShare * float64(s.budget.usable))
}

// buffers is what a width takes out of the host's memory.
func (s *state) buffers(width int, device string) int64 {
	r, _ := s.reserve(width)
	if device == "" {
		return r.Compute
	}
	return r.Compute + s.deviceCompute(device, width)
}

// useWidth is the width everything after is priced at.
func (s *state) useWidth(width int) {
	r, _ := s.reserve(width)
	f := &s.plan.Figures
	f.Width, f.Context, f.Compute = width, r.Context, r.Compute
}

func (s *state) sayWidth(width int, device string) {
	f, full := &s.plan.Figures, s.context
	f.BuffersAllowed = s.buffersAllowed()
	f.BuffersFull, f.BuffersHeld = s.buffers(full, device), s.buffers(width, device)
	f.BuffersSaved = f.BuffersFull - f.BuffersHeld
	whose, estimated := "", ""
	if device != "" {
		whose = ", those of device " + device + " with them,"
	}
	if s.projection().Width == 0 {
		estimated = "estimated from the model's shape, as nothing was projected" + from(s.Placement.Projection.Why)
	}
	account := "buffers of a graph " + count(full) + " tokens wide" + whose + " take " + size(f.BuffersFull) + " of this pool, and " +
		percent(s.policy.ComputeShare) + " (policy) of " + size(s.budget.usable) + " is " + size(f.BuffersAllowed)
	if width == full {
		s.decide("ubatch", text(width), Derived, because(account+": the default, the context, stays", estimated),
			"The prompt is read up to "+count(width)+" tokens at a time, its buffers taking "+size(f.BuffersHeld))
		return
	}
	least := ""
	if f.BuffersHeld > f.BuffersAllowed {
		least = "no graph is made narrower than " + count(s.policy.WidthLeast) + " (policy)"
	}
	s.decide("ubatch", text(width), FromPolicy,
		because(account, "halved to "+count(width)+" they take "+size(f.BuffersHeld), least, estimated),
		count(width)+" tokens per pass; "+count(full)+" would take "+size(f.BuffersSaved)+" more memory")
}
