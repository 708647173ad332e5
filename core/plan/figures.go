package plan

// Figures is the arithmetic of a plan: every number that its reasons quote and that is not a fact or a policy. Sizes are
// bytes, rates bytes per second, times seconds.
type Figures struct {
	Budget       int64 `json:"budget"` // what may be held
	Margin       int64 `json:"margin"` // left free of it
	Usable       int64 `json:"usable"` // what the plan spends
	Limit        int64 `json:"limit"`  // what a person allowed; 0: no limit
	Squeezable   int64 `json:"squeezable"`
	ExemptUsable int64 `json:"exempt_usable"`
	LockUsable   int64 `json:"lock_usable"`

	Experts int64 `json:"experts"` // the host's
	Dense   int64 `json:"dense"`   // the host's
	Placed  int64 `json:"placed"`  // weights on devices
	Cycle   int64 `json:"token_cycle"`
	Slice   int64 `json:"slice"`
	Swept   int64 `json:"swept"` // of the host's memory, per token

	Width          int   `json:"width"` // tokens of the widest graph
	Context        int64 `json:"context"`
	Compute        int64 `json:"compute"`
	Fixed          int64 `json:"fixed,omitempty"` // context, buffers and program, where they alone are too much
	BuffersAllowed int64 `json:"buffers_allowed"`
	BuffersFull    int64 `json:"buffers_full"`
	BuffersHeld    int64 `json:"buffers_held"`
	BuffersSaved   int64 `json:"buffers_saved"`

	WholeExperts int64 `json:"whole_experts"` // the model's, before any placement
	WholeDense   int64 `json:"whole_dense"`
	WholeCompute int64 `json:"whole_compute"` // buffers, before a device narrows the graph
	WholeNeed    int64 `json:"whole_need"`
	Given        int64 `json:"given"`       // projected onto devices
	HostLayers   int   `json:"host_layers"` // whose experts are the host's

	Need    int64 `json:"need"`     // to hold all of the host's share
	NeedAir int64 `json:"need_air"` // and with the air asked for
	Short   int64 `json:"short"`    // by which a dense set misses the exempt store

	Rate      float64 `json:"rate"`      // of the drive, at the slice and the lanes chosen
	BestRate  float64 `json:"best_rate"` // over all lanes
	Spread    float64 `json:"spread"`
	PointSize int64   `json:"point_size"` // request of the point of the curve that applies

	Floor       int64   `json:"floor"` // least cache worth having
	Cache       int64   `json:"cache"`
	CacheLocked int64   `json:"cache_locked"`
	Lockable    int64   `json:"lockable"`     // of a cache; 0 where it is not known
	HeldTotal   int64   `json:"held_total"`   // all rows
	ExemptTotal int64   `json:"exempt_total"` // likewise
	Held        float64 `json:"held"`         // share of the host's experts that the cache holds
	HitRate     float64 `json:"hit_rate"`     // credited
	Missed      int64   `json:"missed"`       // bytes read per token

	Uncached float64 `json:"uncached"` // seconds per token, streaming with no cache
	Mapped   float64 `json:"mapped"`   // seconds per token, the file mapped and nothing resident

	Devices []DeviceFigures `json:"devices,omitempty"`
}

// DeviceFigures is the arithmetic of one device.
type DeviceFigures struct {
	Name      string  `json:"name"`
	Gain      float64 `json:"gain"`      // wide rate over the host's
	ReadGain  float64 `json:"read_gain"` // one token wide
	Stays     int64   `json:"stays"`     // held for the session when it is armed
	Slots     int64   `json:"slots"`     // one layer of experts
	TwoSlots  int64   `json:"two_slots"`
	Cache     int64   `json:"cache"`     // what would be left for the cache with it
	Needs     int64   `json:"needs"`     // of its own memory, with one slot
	Crossings int     `json:"crossings"` // per token, were the layers' halves on both sides
	Crossing  float64 `json:"crossing"`  // seconds per token they would take
	Saved     float64 `json:"saved"`     // seconds per token that its faster reads would save
}

func (s *state) firstFigures() Figures {
	f := Figures{
		Budget: s.budget.reading, Margin: s.budget.margin, Usable: s.budget.usable, Limit: s.budget.limit,
		ExemptUsable: s.exempt.total, LockUsable: s.exempt.lock,
	}
	if estimable(s.machine.Memory) {
		f.Squeezable = squeezable(s.machine.Memory)
	}
	return f
}

// shareFigures follow the host's share, which the placement changes.
func (s *state) shareFigures() {
	f := &s.plan.Figures
	f.HostLayers, f.Given = s.share.layers, s.givenBytes()
	f.Experts, f.Dense, f.Placed = s.share.experts, s.share.dense(), s.share.placed
	f.Cycle, f.Slice, f.Swept = s.share.cycle, s.share.slice, s.share.swept()
	f.Need = s.share.experts + s.share.dense() + s.fixed()
	f.NeedAir = f.Need + int64(s.policy.FitsAir*float64(f.Need))
}

// deviceFigures finds or makes a device's row.
func (s *state) deviceFigures(name string) *DeviceFigures {
	for i := range s.plan.Figures.Devices {
		if s.plan.Figures.Devices[i].Name == name {
			return &s.plan.Figures.Devices[i]
		}
	}
	s.plan.Figures.Devices = append(s.plan.Figures.Devices, DeviceFigures{Name: name})
	return &s.plan.Figures.Devices[len(s.plan.Figures.Devices)-1]
}
