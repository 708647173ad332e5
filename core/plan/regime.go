package plan

import "github.com/bmoe/bmoe/core/machine"

// Regime is a ratio of the model to the machine, never a property of either.
type Regime string

const (
	Fits           Regime = "fits"            // everything can be held
	ExpertsStream  Regime = "experts-stream"  // the dense set can be held and the experts cannot
	DenseOversized Regime = "dense-oversized" // not even the dense set can be held
	UnknownRegime  Regime = "unknown"         // what can be held was not measured
)

// regime classes the whole model; what a placement then takes off the host is looked at again by the next stage.
func regime(s *state) {
	s.shareFigures()
	s.plan.Regime = s.classify()
	f := &s.plan.Figures
	f.WholeExperts, f.WholeDense, f.WholeCompute, f.WholeNeed = f.Experts, f.Dense, f.Compute, f.Need
	account := size(f.Experts) + " of experts, " + size(f.Dense) + " of dense weights, " + size(f.Context) + " of context, " +
		size(f.Compute) + " of buffers and " + size(s.policy.Program) + " of program are " + size(f.Need) + ", of " + size(f.Usable) + " that may be held"
	switch s.plan.Regime {
	case UnknownRegime:
		s.note("regime", string(UnknownRegime), Unprobed, s.budget.why+": what is streamed does not rest on it",
			"Whether the model fits in memory is not known")
	case Fits:
		s.note("regime", string(Fits), Derived, account, "The whole model, "+size(f.Need)+", fits in memory")
	case ExpertsStream:
		s.note("regime", string(ExpertsStream), Derived, account,
			"The model needs "+size(f.Need)+" and there is "+size(f.Usable)+": its experts are larger than memory, the rest is not")
	case DenseOversized:
		fixed := s.fixed()
		f.Fixed = fixed
		if fixed > f.Usable {
			s.note("overcommitted", size(fixed), Derived, "context, buffers and program alone are "+size(fixed)+", more than the "+size(f.Usable)+
				" that may be held: a shorter context ("+typed("ctx-size")+") would hold less",
				"Even the room for prompt and answer, "+size(fixed)+", is more than the "+size(f.Usable)+" there is")
		}
		s.note("regime", string(DenseOversized), Derived, account,
			"What every token needs, "+size(f.Dense)+" of weights and "+size(fixed)+" of context, buffers and program, does not fit in "+size(f.Usable)+" of memory")
	}
}

// fixed is what is held whatever is chosen about weights.
func (s *state) fixed() int64 {
	return s.policy.Program + s.plan.Figures.Context + s.plan.Figures.Compute
}

func (s *state) classify() Regime {
	f := &s.plan.Figures
	switch fixed := s.fixed(); {
	case !s.budget.known:
		return UnknownRegime
	case f.Need <= s.budget.usable:
		return Fits
	case s.share.dense()+fixed <= s.budget.usable:
		return ExpertsStream
	}
	return DenseOversized
}

// airless says whether what fits would not be left alone. Where a reclaim is cheap for the kernel, a model that just fits
// is taken back piece by piece and read again a page at a time, so room is asked for beyond it. Where a reclaim writes to a
// drive, or the limit is this process's own, and where nobody knows, nothing is asked. (A resident run is mapped from the
// file, so no exempt store protects it.)
func (s *state) airless() bool {
	pressure, _ := s.machine.Memory.Pressure.Get()
	return pressure == machine.Compresses && s.budget.usable < s.plan.Figures.NeedAir
}
