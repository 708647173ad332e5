package machine

// Profile is everything a plan may know about a machine. Sizes are bytes, rates bytes per second, prices seconds.
type Profile struct {
	Name string `json:"name"` // the kind of machine, for a person: no host or user name

	Memory   Memory   `json:"memory"`
	Cores    Cores    `json:"cores"`
	Backends Backends `json:"backends"`
	Devices  []Device `json:"devices"` // beyond the host's own cores, each name once
	Storage  Storage  `json:"storage"`
}

// Memory is what may be held, what may be kept, and what happens to it under pressure.
type Memory struct {
	Total     Fact[int64] `json:"total"`     // of the machine, or of the share this process lives in
	Available Fact[int64] `json:"available"` // what this process may still hold, as reported
	Keepable  Fact[int64] `json:"keepable"`  // what it was measured to hold and KEEP, by holding it

	CompressorRatio Fact[float64] `json:"compressor_ratio"` // anonymous bytes per byte they compress to, as achieved now; at least 1
	IdleAnonymous   Fact[int64]   `json:"idle_anonymous"`   // anonymous memory that nobody touched lately

	Pressure Fact[Pressure] `json:"pressure"` // what becomes of anonymous memory when there is too little

	ExemptStore Fact[bool]  `json:"exempt_store"`  // whether an allocation exists that is never reclaimed
	ExemptTotal Fact[int64] `json:"exempt_total"`  // what may be held so in all, net of what is already; 0: nothing
	LockInPlace Fact[int64] `json:"lock_in_place"` // what may be locked where it already is, net likewise; 0: nothing

	PageSize Fact[int64] `json:"page_size"`
}

// Pressure is what becomes of anonymous memory when there is too little.
type Pressure string

const (
	Compresses Pressure = "compresses" // it is compressed, which is cheap: it happens early and often
	Swaps      Pressure = "swaps"      // it is written to storage, which is dear: it happens late
	Kills      Pressure = "kills"      // this process is ended
)

// PressureOf is the one answer from the three questions a system is asked: whether this process is ended for exceeding a
// share of its own, whether anonymous memory is compressed first, whether there is swap. An unknown answer to an earlier
// question leaves the whole unknown, so that a fact not found never looks better than one found.
func PressureOf(ends, compresses, swaps Fact[bool]) Fact[Pressure] {
	questions := []struct {
		asked Fact[bool]
		yes   Pressure
	}{{ends, Kills}, {compresses, Compresses}, {swaps, Swaps}}
	for _, q := range questions {
		switch {
		case IsYes(q.asked):
			return Known(q.yes, q.asked.From())
		case !q.asked.Known():
			return Unknown[Pressure](q.asked.From())
		}
	}
	return Known(Kills, "no limit of its own, no compression and no swap: the system ends a process when memory runs out")
}

// Cores is what computes on the host.
type Cores struct {
	Physical Fact[int]   `json:"physical"` // cores this process may use
	Classes  []CoreClass `json:"classes"`  // fastest first; empty where it is not known
	// ClassesFrom is where the classes came from, or why there are none.
	ClassesFrom string `json:"classes_from,omitempty"`

	ReadRate Fact[float64] `json:"read_rate"` // of the probe's matmul one token wide: weights swept per second
	WideRate Fact[float64] `json:"wide_rate"` // of the same matmul many tokens wide, in the same unit
}

// CoreClass is cores that are alike.
type CoreClass struct {
	Count     int   `json:"count"`
	Frequency int64 `json:"frequency"` // highest, in Hz; 0 where it is not known
}

// Backends says whether anyone looked for accelerators and what could have found one, which keeps "no accelerator here",
// "this build carries none" and "nobody looked" apart.
type Backends struct {
	Linked Fact[int] `json:"linked"` // part of the build
	Loaded Fact[int] `json:"loaded"` // found beside the executable
}

// Device is an accelerator as its properties, never as its name.
type Device struct {
	Name        string `json:"name"`        // as a run lists it
	Description string `json:"description"` // for a person

	Usable      Fact[bool]  `json:"usable"`       // No where a probe of it ended its process, or showed that it does not do what it advertises: it is kept out of everything
	SharesHost  Fact[bool]  `json:"shares_host"`  // whether what it holds comes out of the host's memory
	Total       Fact[int64] `json:"total"`        // of its own memory
	Free        Fact[int64] `json:"free"`         // likewise
	HostBuffer  Fact[bool]  `json:"host_buffer"`  // whether it computes on buffers of the host
	HostPointer Fact[bool]  `json:"host_pointer"` // whether it can wrap memory that someone else owns. Never No: see core/plan
	NeedsRepack Fact[bool]  `json:"needs_repack"` // whether weights must be rearranged for it
	RunsExperts Fact[bool]  `json:"runs_experts"` // whether it runs the expert operation on every type of the model
	Wires       Fact[bool]  `json:"wires"`        // whether its buffers are exempt from reclaim, out of the host's exempt total

	ReadRate  Fact[float64] `json:"read_rate"`  // as Cores.ReadRate
	ReadError Fact[float64] `json:"read_error"` // normalized mean squared error of that result against the host's
	WideRate  Fact[float64] `json:"wide_rate"`  // as Cores.WideRate; never 0: a device that will not run it is unknown
	WideError Fact[float64] `json:"wide_error"`
	Crossing  Fact[float64] `json:"crossing"` // seconds one crossing of the graph between host and device takes
}

// Storage is the drive the experts are on, read the way a run reads it.
type Storage struct {
	Direct Fact[bool]  `json:"direct"` // whether reads past the file cache return the right bytes
	Align  Fact[int64] `json:"align"`  // granule of such reads; unknown where the reader fell back to its default
	Curve  []Rate      `json:"curve"`  // empty where nobody read
	From   string      `json:"from"`   // where the curve came from, or why there is none

	Refault Fact[float64] `json:"refault"` // of scattered reads of one page, one at a time

	MappingSerialises Fact[bool]    `json:"mapping_serialises"` // whether a live mapping slows direct reads. Never No
	MappedRate        Fact[float64] `json:"mapped_rate"`        // with a mapping alive
	UnmappedRate      Fact[float64] `json:"unmapped_rate"`      // after releasing it

	OverlapGain Fact[float64] `json:"overlap_gain"` // tokens per second computing while reading over those of taking turns
}

// Rate is one point of the curve: reads of Size bytes, Lanes at a time.
type Rate struct {
	Size   int64   `json:"size"`
	Lanes  int     `json:"lanes"`
	Rate   float64 `json:"rate"`             // median over the repeats
	Spread float64 `json:"spread,omitempty"` // fastest repeat over slowest; 0 where it was read once
}

// Device finds one by its name.
func (p *Profile) Device(name string) (Device, bool) {
	for _, d := range p.Devices {
		if d.Name == name {
			return d, true
		}
	}
	return Device{}, false
}
