package plan

// widestGraph chooses how many tokens of a prompt are computed at once. Left alone the width follows the context, which
// makes the fastest prefill; but the buffers grow with it and are memory that the expert cache does not get. The rule is
// the widest graph whose buffers stay inside a share of what may be held, found by halving from the context.
func widestGraph(s *state) {
	width := s.context
	switch {
	case s.byHand("ubatch"):
		width = min(int(s.set.Int("ubatch")), s.context)
		s.decide("ubatch", text(width), Operator, "", "")
	case !s.budget.known || s.Placement.Projection.Width > 0 && !s.Placement.Projection.sloped():
		missing := "what a token of width takes was not projected"
		if !s.budget.known {
			missing = "what may be held was not measured"
		}
		s.keep("ubatch", missing+", so the width keeps its default, the context of "+count(width)+" tokens",
			"The prompt is read "+count(width)+" tokens at a time, as nothing says what less would save")
	default:
		width = s.narrowed(width)
	}
	s.plan.Figures.Width = width
	s.setReserve(width)
}

func (s *state) narrowed(full int) int {
	allowed := int64(s.policy.ComputeShare * float64(s.budget.usable))
	width := full
	for s.poolBuffers(width) > allowed && width/2 >= s.policy.WidthLeast {
		width /= 2
	}
	s.plan.Figures.BuffersAllowed = allowed
	s.plan.Figures.BuffersFull = s.poolBuffers(full)
	s.plan.Figures.BuffersHeld = s.poolBuffers(width)
	s.plan.Figures.BuffersSaved = s.poolBuffers(full) - s.poolBuffers(width)
	estimated := ""
	if s.Placement.Projection.Width == 0 {
		estimated = "estimated from the model's shape, as nothing was projected"
	}
	account := "buffers of a graph " + count(full) + " tokens wide take " + size(s.poolBuffers(full)) + " of this pool, and " +
		percent(s.policy.ComputeShare) + " (policy) of " + size(s.budget.usable) + " is " + size(allowed)
	if width == full {
		s.decide("ubatch", text(width), Derived, because(account+": the default, the context, stays", estimated),
			"The prompt is read up to "+count(width)+" tokens at a time, its buffers taking "+size(s.poolBuffers(width)))
		return width
	}
	least := ""
	if s.poolBuffers(width) > allowed {
		least = "no graph is made narrower than " + count(s.policy.WidthLeast) + " (policy)"
	}
	s.decide("ubatch", text(width), FromPolicy,
		because(account, "halved to "+count(width)+" they take "+size(s.poolBuffers(width)), least, estimated),
		count(width)+" tokens per pass; "+count(full)+" would take "+size(s.plan.Figures.BuffersSaved)+" more memory")
	return width
}

// poolBuffers is what a width takes out of the host's memory, the buffers of the device that may run the prefill included
// where they come from there.
func (s *state) poolBuffers(width int) int64 {
	r, _ := s.reserve(width)
	var device int64
	for _, c := range s.contenders {
		if c.pooled && !(s.byHand("prefill-device") && s.set.String("prefill-device") != c.device.Name) {
			device = max(device, s.deviceCompute(c.device.Name, width))
		}
	}
	return r.Compute + device
}

func (s *state) setReserve(width int) {
	r, _ := s.reserve(width)
	s.plan.Figures.Context, s.plan.Figures.Compute = r.Context, r.Compute
}
