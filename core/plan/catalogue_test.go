package plan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/machine"
)

// entry is a machine nobody here owns, what it should be told, and why.
type entry struct {
	name string
	why  string

	machine   machine.Profile
	model     shape
	args      []string
	placement Placement
	history   Credit
	session   *Abilities // nil: one that can do everything

	regime  Regime
	outcome Outcome
	knobs   map[string]string // parameters of the run
	says    map[string]string // of a decision's value or reason, a part
	silent  []string          // knobs nothing is said of
	source  map[string]Source
	check   func(*testing.T, Plan)
}

// catalogue is read as a list of machines. Each rule has at least one machine on either side of it.
var catalogue = []entry{
	// The regime, the air rule and the margins.
	{
		name: "desktop with swap", why: "the plain case: dense held as ordinary memory, the rest is cache, four lanes win",
		machine: desktop(gib(32), gib(12)), model: qwen, regime: ExpertsStream, outcome: Streams,
		knobs:  map[string]string{"moe-stream": "on", "dense-weights": "anon", "io-threads": "4", "overlap": "on", "odirect": "on", "cache-pin": "off", "device": ""},
		says:   map[string]string{"budget": "4%", "cache-pin": "less than one token cycle", "threads": "12 at 4.7 GHz"},
		source: map[string]Source{"dense-weights": Measured, "io-threads": Measured, "threads": Unprobed, "overlap": FromPolicy},
		check: func(t *testing.T, p Plan) {
			assert.InDelta(t, 581, float64(p.Figures.Cycle)/(1<<20), 0.5, "the token cycle the specification states")
			held, _ := p.Ledger.Total()
			assert.LessOrEqual(t, held, p.Figures.Usable)
			assert.Less(t, p.Figures.Usable-held, int64(1<<20), "the cache takes what is left")
		},
	},
	{
		name: "desktop whose mapping serialises", why: "a measured yes is quoted, and the mapping is gone anyway once the dense set is held",
		machine: with(desktop(gib(32), gib(12)), func(m *machine.Profile) {
			m.Storage.MappingSerialises = machine.Yes(probed)
			m.Storage.MappedRate, m.Storage.UnmappedRate = machine.Known(871*perMiB, probed), machine.Known(1680*perMiB, probed)
		}),
		model: qwen, regime: ExpertsStream, outcome: Streams,
		says: map[string]string{"mapping": "871 MiB/s with it and 1.6 GiB/s without"},
	},
	{
		name: "desktop whose dense set is mapped by hand", why: "the mapping stays, and what that costs is said",
		machine: with(desktop(gib(32), gib(12)), func(m *machine.Profile) { m.Storage.MappingSerialises = machine.Yes(probed) }),
		model:   qwen, args: []string{"--dense-weights", "mmap"}, regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"dense-weights": "mmap"}, says: map[string]string{"mapping": "slows reads here"},
		source: map[string]Source{"dense-weights": Operator, "mapping": Measured},
		check: func(t *testing.T, p Plan) {
			row := p.Ledger.Row(RowDense)
			assert.Equal(t, Room, row.Kind)
			assert.Equal(t, p.Figures.Dense, row.Bytes, "room is left for its pages")
			assert.Greater(t, p.Prediction.Refault, 10., "116 times dearer than a sequential read: the kernel owes a mapping nothing")
		},
	},
	{
		name: "server where all fits", why: "reading experts would only add reads that resident weights do not need",
		machine: desktop(gib(64), gib(48)), model: qwen, regime: Fits, outcome: Resident,
		knobs:  map[string]string{"moe-stream": "off"},
		silent: []string{"cache-mb", "dense-weights", "prefill-device"},
		check: func(t *testing.T, p Plan) {
			assert.Zero(t, p.Prediction.Read)
			assert.Equal(t, p.Prediction.Compute, p.Prediction.PerToken)
		},
	},
	{
		name: "server where all but a little fits", why: "the other side: a GiB short of it the experts stream",
		machine: desktop(gib(64), gib(20)), model: qwen, regime: ExpertsStream, outcome: Streams,
	},
	{
		name: "phone where an 8B just fits", why: "pressure compresses: what just fits is taken back piece by piece, so it streams",
		machine: phone(gib(9)), model: small, regime: Fits, outcome: Streams,
		says:   map[string]string{"moe-stream": "not be left alone", "cache-mb": "all of the experts"},
		source: map[string]Source{"moe-stream": FromPolicy},
	},
	{
		name: "tablet with air above an 8B", why: "twice the model is there: it is left alone",
		machine: with(phone(gib(20)), func(m *machine.Profile) { m.Memory.Total = machine.Known(gib(24), probed) }), model: small, regime: Fits, outcome: Resident,
	},
	{
		name: "desktop where an 8B just fits", why: "pressure swaps: writing is dear for the kernel and the resident model stands",
		machine: desktop(gib(12), gib(9)), model: small, regime: Fits, outcome: Resident,
	},
	{
		name: "hard cap where an 8B just fits", why: "a process ended for exceeding its share has nothing taken from it below that",
		machine: with(desktop(gib(12), gib(9)), func(m *machine.Profile) { m.Memory.Pressure = machine.Known(machine.Kills, probed) }),
		model:   small, regime: Fits, outcome: Resident, says: map[string]string{"budget": "20%"},
	},
	{
		name: "unprofiled pressure where an 8B just fits", why: "the evidence for air is about cheap reclaim and does not generalise",
		machine: with(desktop(gib(12), gib(9)), func(m *machine.Profile) {
			m.Memory.Pressure = machine.Unknown[machine.Pressure]("could not be read")
		}),
		model: small, regime: Fits, outcome: Resident, says: map[string]string{"budget": "15%"},
	},
	{
		name: "hard per-process cap", why: "a fatal limit widens the margin and leaves nothing mapped",
		machine: with(desktop(gib(8), gib(5)), func(m *machine.Profile) { m.Memory.Pressure = machine.Known(machine.Kills, probed) }),
		model:   qwen, regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"dense-weights": "anon"}, says: map[string]string{"budget": "20%"},
	},
	{
		name: "container with a cgroup limit", why: "what its group may hold is what there is, whatever the machine has",
		machine: with(desktop(gib(3), gib(2.9)), func(m *machine.Profile) {
			m.Name = "container"
			m.Memory.Available = machine.Known(gib(2.9), "limit of the control group, less what it cannot give back")
			m.Memory.Pressure = machine.Known(machine.Kills, "the group has no swap of its own")
		}),
		model: qwen, regime: DenseOversized, outcome: Streams,
		args:  []string{"-c", "32768"},
		knobs: map[string]string{"dense-weights": "mmap", "cache-mb": "0"},
		says:  map[string]string{"regime": "2.5 GiB of context", "dense-weights": "a byte of it is worth more than a byte of cache"},
	},
	{
		name: "tiny board with card storage", why: "the dense set does not fit: it stays mapped, what is left is its room, and the experts stream uncached",
		machine: with(desktop(gib(2), gib(1.2)), func(m *machine.Profile) {
			m.Name = "board"
			m.Cores.ReadRate = machine.Known(3*perGiB, probed)
			m.Storage = drive(80*perMiB, 6*perMiB)
		}),
		model: qwen, regime: DenseOversized, outcome: Streams,
		knobs: map[string]string{"dense-weights": "mmap", "cache-mb": "0"},
		says:  map[string]string{"dense-weights": "do not fit whole", "mapping": "kept"},
		check: func(t *testing.T, p Plan) {
			row := p.Ledger.Row(RowDense)
			assert.Equal(t, Room, row.Kind)
			held, _ := p.Ledger.Total()
			assert.LessOrEqual(t, held, p.Figures.Usable)
			assert.True(t, p.Prediction.Known)
			assert.Greater(t, p.Prediction.PerToken, 7.)
		},
	},
	{
		name: "board that a person gave a limit", why: "the limit caps what the run may hold",
		machine: desktop(gib(32), gib(12)), model: qwen, args: []string{"--memory", "4GiB"}, regime: ExpertsStream, outcome: Streams,
		says: map[string]string{"budget": "allowed by hand"},
		check: func(t *testing.T, p Plan) {
			assert.Equal(t, gib(4), p.Figures.Usable)
			held, _ := p.Ledger.Total()
			assert.LessOrEqual(t, held, gib(4))
		},
	},
	{
		name: "limit beyond the machine", why: "a limit is a cap and no permission",
		machine: desktop(gib(32), gib(12)), model: qwen, args: []string{"--memory", "24GiB"}, regime: ExpertsStream, outcome: Streams,
		check: func(t *testing.T, p Plan) { assert.Less(t, p.Figures.Usable, gib(12)) },
	},

	{
		name: "limit where nothing was measured", why: "a person's word is all there is, and it is spent",
		machine: machine.Profile{Name: "unknown"}, model: qwen, args: []string{"--memory", "6GiB"}, regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"dense-weights": "anon"}, source: map[string]Source{"budget": Operator},
		check: func(t *testing.T, p Plan) { assert.Equal(t, gib(6), p.Figures.Usable) },
	},

	// Nothing probed.
	{
		name: "nothing was probed at all", why: "every line says unprobed, and the run holds nothing on a guess",
		machine: machine.Profile{Name: "unknown"}, model: qwen, regime: UnknownRegime, outcome: Streams,
		knobs: map[string]string{"moe-stream": "on", "dense-weights": "mmap", "cache-mb": "auto", "io-threads": "4", "odirect": "on", "ubatch": "auto"},
		source: map[string]Source{"budget": Unprobed, "moe-stream": Unprobed, "dense-weights": Unprobed, "cache-mb": Unprobed, "io-threads": Unprobed,
			"odirect": Unprobed, "ubatch": Unprobed, "threads": Unprobed, "placement": Unprobed},
		says:  map[string]string{"placement": "nobody looked"},
		check: func(t *testing.T, p Plan) { assert.False(t, p.Prediction.Known) },
	},
	{
		name: "free facts only, room for a cache", why: "what was not measured keeps its default; the cache is what is left, without a price",
		machine: unprobed(desktop(gib(32), gib(12))), model: qwen, regime: ExpertsStream, outcome: Streams,
		knobs:  map[string]string{"dense-weights": "anon", "io-threads": "4"},
		says:   map[string]string{"unmeasured-storage": "only free facts", "cache-unpriced": "by default", "unmeasured-refault": "held by default"},
		source: map[string]Source{"io-threads": Unprobed, "odirect": Unprobed, "cache-mb": Derived},
		check:  func(t *testing.T, p Plan) { assert.False(t, p.Prediction.Known) },
	},
	{
		name: "free facts only, under the token cycle", why: "no room and no price: declined, and nothing is held but context and buffers",
		machine: unprobed(desktop(gib(8), gib(2.9))), model: qwen, regime: ExpertsStream, outcome: Declined,
		knobs:  map[string]string{"moe-stream": "off"},
		says:   map[string]string{"declined": "never measured"},
		silent: []string{"dense-weights", "cache-mb", "prefill-device"},
		check: func(t *testing.T, p Plan) {
			assert.Zero(t, p.Ledger.Row(RowDense).Bytes)
			assert.Zero(t, p.Ledger.Row(RowCache).Bytes)
			assert.Positive(t, p.Ledger.Row(RowContext).Bytes)
			assert.False(t, p.Prediction.Known, "the cost of the refused allocation is not printed")
		},
	},
	{
		name: "declined where a refault has a price", why: "its cost is the file left mapped with nothing resident: the bound is the prediction",
		machine: with(unprobed(desktop(gib(8), gib(2.9))), func(m *machine.Profile) {
			m.Cores.ReadRate = machine.Known(109*perGiB, probed)
			m.Storage.Refault = machine.Known(1400*perMiB, probed)
		}),
		model: qwen, regime: ExpertsStream, outcome: Declined,
		check: func(t *testing.T, p Plan) {
			require.True(t, p.Prediction.Known)
			assert.Equal(t, p.Prediction.Bound, p.Prediction.PerToken)
			assert.Greater(t, p.Prediction.PerToken, 1.)
		},
	},
	{
		name: "drive no better than its page faults", why: "the uncached stream is priced against the mapping and loses",
		machine: with(desktop(gib(8), gib(1.2)), func(m *machine.Profile) {
			m.Storage.Refault = machine.Known(20000*perMiB, probed)
			m.Storage.Curve = []machine.Rate{{Size: 600 << 10, Lanes: 1, Rate: 60 * perMiB}}
		}),
		model: qwen, regime: DenseOversized, outcome: Declined, says: map[string]string{"declined": "no better than"},
	},
	{
		name: "declined, and told to stream", why: "a person's word stands: uncached",
		machine: unprobed(desktop(gib(8), gib(2.9))), model: qwen, args: []string{"--moe-stream"}, regime: ExpertsStream, outcome: Streams,
		knobs:  map[string]string{"moe-stream": "on", "cache-mb": "0"},
		source: map[string]Source{"moe-stream": Operator},
	},

	// The token cycle.
	{
		name: "laptop with 3 GB free", why: "under the cycle a cache would hit nothing: it is off and the experts stream",
		machine: laptop(gib(2.8), gib(9.6)), model: qwen, args: []string{"-c", "16384"}, placement: projection("GPU0"), regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"moe-stream": "on", "cache-mb": "0", "cache-pin": "off", "prefill-device": ""},
		says:  map[string]string{"cache-off": "581 MiB", "cache-mb": "left mapped", "prefill-device": "under one token cycle"},
		check: func(t *testing.T, p Plan) {
			assert.InDelta(t, 0.095, p.Prediction.PerToken, 0.01, "95 ms per token is what the specification's plan predicted")
			assert.Zero(t, p.Prediction.HitRate)
		},
	},
	{
		name: "laptop with 8.9 GB free", why: "the same machine with room: a cache of about 5.9 GB",
		machine: laptop(8_900_000_000, gib(9.6)), model: qwen, args: []string{"-c", "16384", "--prefill-device", ""}, placement: projection("GPU0"),
		regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"dense-weights": "pinned", "cache-pin": "on", "cache-pin-fit": "on"},
		check: func(t *testing.T, p Plan) { assert.InDelta(t, 5.5e9, float64(p.Figures.Cache), 0.5e9) },
	},
	{
		name: "cache of 536 MiB by hand", why: "a pin stands, with a warning that it will hit nothing",
		machine: desktop(gib(32), gib(12)), model: qwen, args: []string{"--cache-mb", "536"}, regime: ExpertsStream, outcome: Streams,
		knobs:  map[string]string{"cache-mb": "536"},
		says:   map[string]string{"cache-floor": "hit nothing"},
		source: map[string]Source{"cache-mb": Operator},
		check:  func(t *testing.T, p Plan) { assert.Zero(t, p.Prediction.HitRate) },
	},
	{
		name: "cache of 600 MiB by hand", why: "the other side of the cycle: no warning",
		machine: desktop(gib(32), gib(12)), model: qwen, args: []string{"--cache-mb", "600"}, regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"cache-mb": "600"}, silent: []string{"cache-floor"},
		check: func(t *testing.T, p Plan) { assert.Positive(t, p.Prediction.HitRate) },
	},
	{
		name: "cache turned off by hand", why: "nothing is asked about it",
		machine: desktop(gib(32), gib(12)), model: qwen, args: []string{"--cache-mb", "0"}, regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"cache-mb": "0", "cache-pin": "off"}, silent: []string{"cache-floor", "cache-off"},
	},
	{
		name: "narrower routing by hand", why: "the cycle and the bound are those of the width the run has, and the line says whose choice it is",
		machine: desktop(gib(32), gib(12)), model: qwen, args: []string{"--n-expert-used", "4"}, regime: ExpertsStream, outcome: Streams,
		says:   map[string]string{"n-expert-used": "changes what the model answers", "cache-floor": "291 MiB"},
		silent: []string{"lossy"}, source: map[string]Source{"n-expert-used": Operator},
	},
	{
		name: "small cycle, small cache", why: "the floor is the model's own: a cache above it is worth having however small it looks",
		machine: desktop(gib(4), gib(2.1)), model: small, regime: ExpertsStream, outcome: Streams,
		check: func(t *testing.T, p Plan) {
			assert.GreaterOrEqual(t, p.Figures.Cache, p.Figures.Cycle)
			assert.Less(t, p.Figures.Cache, gib(2))
		},
	},

	// The headroom.
	{
		name: "laptop with an idle neighbour", why: "the compressor's own figures say what squeezing it would give",
		machine: with(laptop(gib(2.7), gib(9.6)), func(m *machine.Profile) {
			m.Memory.CompressorRatio, m.Memory.IdleAnonymous = machine.Known(1.284, probed), machine.Known(gib(9.5), probed)
		}),
		model: qwen, args: []string{"--prefill-device", ""}, regime: ExpertsStream, outcome: Streams,
		says:   map[string]string{"budget": "4.8 GiB may be held"},
		source: map[string]Source{"budget": Derived},
		check:  func(t *testing.T, p Plan) { assert.Greater(t, p.Figures.Cache, gib(1.5)) },
	},
	{
		name: "desktop with an idle neighbour", why: "where pressure swaps the neighbours' memory is not room to take",
		machine: with(desktop(gib(16), gib(4)), func(m *machine.Profile) {
			m.Memory.CompressorRatio, m.Memory.IdleAnonymous = machine.Known(3., probed), machine.Known(gib(9), probed)
		}),
		model: qwen, regime: ExpertsStream, outcome: Streams,
		check: func(t *testing.T, p Plan) { assert.Equal(t, gib(4), p.Figures.Budget) },
	},
	{
		name: "phone measured by holding", why: "the measurement replaces what is reported, here upwards",
		machine: with(phone(gib(3.6)), func(m *machine.Profile) { m.Memory.Keepable = machine.Known(gib(5.6), probed) }),
		model:   qwenQ4, regime: ExpertsStream, outcome: Streams,
		says: map[string]string{"budget": "5.6 GiB may be held: measured by holding it"},
	},
	{
		name: "phone measured to keep less", why: "and downwards: the reported figure was an over-promise",
		machine: with(phone(gib(5.6)), func(m *machine.Profile) { m.Memory.Keepable = machine.Known(gib(3.6), probed) }),
		model:   qwenQ4, regime: ExpertsStream, outcome: Streams,
		says: map[string]string{"budget": "3.6 GiB may be held"},
	},

	// Stores that are exempt from reclaim.
	{
		name: "phone with an exempt store", why: "the dense set is pinned there whole; its cache cannot be locked and is ordinary memory",
		machine: phone(gib(4.6)), model: qwenQ4, regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"dense-weights": "pinned", "cache-pin": "off", "cache-pin-fit": "off"},
		says:  map[string]string{"dense-pin": "publishes no total"},
		check: func(t *testing.T, p Plan) { assert.Zero(t, p.Ledger.Row(RowCache).Exempt) },
	},
	{
		name: "phone with nothing exempt", why: "the dense set is ordinary memory and may be compressed",
		machine: with(phone(gib(4.6)), func(m *machine.Profile) { m.Memory.ExemptStore = machine.No(probed) }), model: qwenQ4, regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"dense-weights": "anon"}, silent: []string{"dense-pin"},
		source: map[string]Source{"dense-weights": Measured},
	},
	{
		name: "phone whose store was not asked for", why: "unknown is not yes: the dense set is not pinned",
		machine: with(phone(gib(4.6)), func(m *machine.Profile) { m.Memory.ExemptStore = machine.Unknown[bool]("denied") }), model: qwenQ4,
		regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"dense-weights": "anon"},
		source: map[string]Source{"dense-weights": Unprobed},
	},
	{
		name: "laptop whose store is short of the dense set", why: "whole or not at all: ordinary memory, and how far short is said",
		machine: laptop(gib(8), gib(1.2)), model: qwen, args: []string{"--prefill-device", ""}, regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"dense-weights": "anon"}, says: map[string]string{"dense-pin": "short of the dense set"},
	},
	{
		name: "laptop whose lock is smaller than the budget", why: "the cache is sized to what can be locked, at 95% of it, and not to what can be held",
		machine: laptop(gib(10), gib(4)), model: qwen, args: []string{"--prefill-device", ""}, regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"dense-weights": "pinned", "cache-pin": "on", "cache-pin-fit": "on"},
		says:  map[string]string{"cache-mb": "what can be locked"},
		check: func(t *testing.T, p Plan) {
			_, exempt := p.Ledger.Total()
			assert.LessOrEqual(t, exempt, gib(4*0.95)+1)
			assert.Greater(t, exempt, gib(4*0.95)-2<<20)
			held, _ := p.Ledger.Total()
			assert.Less(t, held, p.Figures.Usable-gib(3))
		},
	},
	{
		name: "laptop with the 91 GB model", why: "the cache is asked for at what can be locked beside a pinned dense set of 6.7 GB: 3.2 GB where 4.1 ran at a tenth of the speed",
		machine: laptop(gib(14), 10_368<<20), model: big, regime: ExpertsStream, outcome: Streams,
		args: []string{"-c", "2048", "--ubatch", "256", "--prefill-device", ""}, knobs: map[string]string{"dense-weights": "pinned", "cache-pin": "on", "cache-pin-fit": "on"},
		check: func(t *testing.T, p Plan) { assert.InDelta(t, 3.5e9, float64(p.Figures.Cache), 0.5e9) },
	},
	{
		name: "the 91 GB model with its slots held by hand", why: "two layers and the buffers are more than 5 GB: the cache would fall under one token cycle",
		machine: laptop(gib(14), 10_368<<20), model: big, args: []string{"-c", "2048", "--ubatch", "256", "--no-prefill-slots-on-demand"}, regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"prefill-device": ""}, says: map[string]string{"prefill-device": "GPU0: with one slot"},
	},
	{
		name: "the 91 GB model with its slots in turn", why: "one slot fits in what the cache can yield, two do not",
		machine: laptop(gib(14), 10_368<<20), model: big, args: []string{"-c", "2048", "--ubatch", "256"}, regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"prefill-device": "GPU0", "prefill-slots": "1"},
	},
	{
		name: "lock ceiling that could not be read", why: "not a ceiling of zero: the lock is asked for at run time and counted as nothing",
		machine: with(laptop(gib(8), gib(9.6)), func(m *machine.Profile) {
			m.Memory.LockInPlace, m.Memory.ExemptTotal = machine.Unknown[int64]("denied"), machine.Unknown[int64]("denied")
			m.Memory.ExemptStore = machine.Unknown[bool]("denied")
		}),
		model: qwen, args: []string{"--prefill-device", ""}, regime: ExpertsStream, outcome: Streams,
		knobs:  map[string]string{"dense-weights": "anon", "cache-pin": "on", "cache-pin-fit": "on"},
		source: map[string]Source{"cache-pin": Unprobed},
		check: func(t *testing.T, p Plan) {
			row := p.Ledger.Row(RowCache)
			assert.True(t, row.Asked)
			assert.Zero(t, row.Exempt, "no lock is counted as granted")
			assert.False(t, p.Ledger.Exempt.Known)
			held, _ := p.Ledger.Total()
			assert.LessOrEqual(t, held, p.Figures.Usable, "an unverified lock never creates memory")
		},
	},
	{
		name: "unread ceiling under a known total of zero", why: "a known bound still holds: nothing can be locked",
		machine: with(laptop(gib(8), 0), func(m *machine.Profile) { m.Memory.LockInPlace = machine.Unknown[int64]("denied") }),
		model:   qwen, args: []string{"--prefill-device", ""}, regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"cache-pin": "off", "cache-pin-fit": "off", "dense-weights": "anon"},
	},
	{
		name: "cache size by hand under a lock", why: "a size set by hand is never shrunk unasked",
		machine: laptop(gib(10), gib(8)), model: qwen, args: []string{"--prefill-device", "", "--cache-mb", "2000"}, regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"cache-mb": "2000", "cache-pin": "on", "cache-pin-fit": "off"},
	},
	{
		name: "locking turned off by hand", why: "the cache is sized to what can be held",
		machine: laptop(gib(10), gib(4)), model: qwen, args: []string{"--prefill-device", "", "--no-cache-pin"}, regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"cache-pin": "off"},
		check: func(t *testing.T, p Plan) { assert.Greater(t, p.Figures.Cache, gib(5)) },
	},

	// The widest graph.
	{
		name: "laptop at a context of 16384", why: "the widest graph inside a tenth is 1024: the specification's own row",
		machine: laptop(gib(8.3), gib(9.6)), model: qwen, args: []string{"-c", "16384"}, placement: projection("GPU0"), regime: ExpertsStream, outcome: Streams,
		knobs:  map[string]string{"ubatch": "1024", "prefill-device": "GPU0", "prefill-slots": "2", "prefill-slots-on-demand": "on", "prefill-best-effort": "on", "device": "GPU0"},
		source: map[string]Source{"ubatch": FromPolicy},
		says:   map[string]string{"prefill-device": "7.6x", "device-unapplied": "0.61x", "extra-offload": "decode stays on the cores", "ledger": "in turn with the cache"},
		check: func(t *testing.T, p Plan) {
			slots, cache := p.Ledger.Row(RowSlots), p.Ledger.Row(RowCache)
			assert.Equal(t, InTurn, slots.Kind)
			assert.InDelta(t, 996, float64(slots.Bytes)/(1<<20), 4, "a layer of experts is 498 MiB")
			assert.LessOrEqual(t, slots.Bytes, cache.Bytes)
		},
	},
	{
		name: "workstation at a context of 16384", why: "inside the share nothing changes and the width is the context",
		machine: desktop(gib(128), gib(110)), model: big, args: []string{"-c", "8192"}, placement: Placement{Projection: Projection{Width: 8192,
			At: Reserve{Context: gib(1), Compute: gib(3)}, Half: Reserve{Context: gib(1), Compute: gib(1.5)}}},
		regime: Fits, outcome: Resident, knobs: map[string]string{"ubatch": "8192"}, source: map[string]Source{"ubatch": Derived},
	},
	{
		name: "a width that was projected at one point", why: "a slope that was not measured decides nothing",
		machine: desktop(gib(32), gib(12)), model: qwen, placement: Placement{Projection: Projection{Width: 4096, At: Reserve{Context: inMiB(80), Compute: gib(2)}}},
		regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"ubatch": "auto"}, source: map[string]Source{"ubatch": Unprobed},
	},
	{
		name: "width by hand", why: "left alone and charged in full",
		machine: laptop(gib(8.3), gib(9.6)), model: qwen, args: []string{"-c", "16384", "--ubatch", "4096", "--prefill-device", ""}, placement: projection("GPU0"), regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"ubatch": "4096"}, source: map[string]Source{"ubatch": Operator},
		check: func(t *testing.T, p Plan) {
			assert.InDelta(t, 990, float64(p.Ledger.Row(RowCompute).Bytes)/(1<<20), 25, "the line through the two points of the projection")
		},
	},
	{
		name: "the benchmark model in 3 GB", why: "704 MiB of buffers at the context are more than a tenth: as this repository's own projection has it, 1024 take 176",
		machine: desktop(gib(32), gib(3)), model: qwen, placement: Placement{Projection: Projection{Width: 4096,
			At: Reserve{Context: inMiB(184), Compute: inMiB(704)}, Half: Reserve{Context: inMiB(184), Compute: inMiB(352)}, Why: "projected"}},
		regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"ubatch": "1024"}, source: map[string]Source{"ubatch": FromPolicy},
		check: func(t *testing.T, p Plan) {
			assert.Equal(t, inMiB(176), p.Ledger.Row(RowCompute).Bytes, "on the line through the two points")
			assert.Equal(t, inMiB(184), p.Ledger.Row(RowContext).Bytes)
		},
	},
	{
		name: "a width by hand, projected at it", why: "charged in full, however much it is: to the byte what was projected",
		machine: desktop(gib(32), gib(3)), model: qwen, args: []string{"--ubatch", "4096"}, placement: Placement{Projection: Projection{Width: 4096,
			At: Reserve{Context: inMiB(184), Compute: inMiB(704)}, Half: Reserve{Context: inMiB(184), Compute: inMiB(352)}}},
		regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"ubatch": "4096"}, source: map[string]Source{"ubatch": Operator},
		check: func(t *testing.T, p Plan) { assert.Equal(t, inMiB(704), p.Ledger.Row(RowCompute).Bytes) },
	},
	{
		name: "a machine without the library that projects", why: "the estimate stands in, and the plan says why",
		machine: desktop(gib(32), gib(12)), model: qwen, placement: Placement{Projection: Projection{Why: "libbmoe-common is not here"}},
		regime: ExpertsStream, outcome: Streams, says: map[string]string{"ubatch": "nothing was projected (libbmoe-common is not here)"},
		check: func(t *testing.T, p Plan) {
			assert.Contains(t, p.Ledger.Row(RowCompute).From, "libbmoe-common is not here")
		},
	},
	{
		name: "a card whose placement is taken", why: "the host holds what the placed model leaves it: no cache, and narrower buffers",
		machine: with(desktop(gib(32), gib(12)), func(m *machine.Profile) { m.Devices = []machine.Device{card("CARD0", gib(24))} }), model: qwen, placement: placed("CARD0"), outcome: OnDevices, regime: ExpertsStream,
		check: func(t *testing.T, p Plan) {
			assert.Zero(t, p.Ledger.Row(RowContext).Bytes)
			assert.Equal(t, inMiB(90), p.Ledger.Row(RowCompute).Bytes)
		},
	},
	{
		name: "a card whose placement is not taken", why: "the host holds it all: what was projected with every layer here",
		machine: with(desktop(gib(32), gib(12)), func(m *machine.Profile) { m.Devices = []machine.Device{card("CARD0", gib(24))} }), model: qwen, session: &Abilities{}, placement: placed("CARD0"), outcome: Streams, regime: ExpertsStream,
		check: func(t *testing.T, p Plan) {
			assert.Equal(t, inMiB(80), p.Ledger.Row(RowContext).Bytes)
			assert.Equal(t, inMiB(600), p.Ledger.Row(RowCompute).Bytes)
		},
	},
	{
		name: "starved machine", why: "no graph is made narrower than 512 tokens",
		machine: desktop(gib(4), gib(2.6)), model: qwen, regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"ubatch": "512"}, says: map[string]string{"ubatch": "512"},
	},

	// Devices at prefill.
	{
		name: "phone with a neural device, 2.9 GB free", why: "forty times the cores and refused: the cache would fall under the cycle, and room is not counted on that was not measured",
		machine: with(phone(2_900_000_000), func(m *machine.Profile) { m.Devices = []machine.Device{npu()} }), model: qwenQ4, args: []string{"-c", "2048"},
		placement: Placement{Projection: Projection{Width: 2048, At: Reserve{Context: inMiB(50), Compute: inMiB(300)}, Half: Reserve{Context: inMiB(50), Compute: inMiB(150)}}},
		regime:    ExpertsStream, outcome: Streams,
		knobs: map[string]string{"prefill-device": "", "device": ""},
		says:  map[string]string{"prefill-device": "under one token cycle", "device-rates": "1500 GiB/s", "shared-memory": "charged to the host"},
	},
	{
		name: "the same phone with 4.6 GB free", why: "armed by itself: two slots in turn with a cache of about 1.8 GB",
		machine: with(phone(4_600_000_000), func(m *machine.Profile) { m.Devices = []machine.Device{npu()} }), model: qwenQ4, args: []string{"-c", "2048"},
		placement: Placement{Projection: Projection{Width: 2048, At: Reserve{Context: inMiB(50), Compute: inMiB(300)}, Half: Reserve{Context: inMiB(50), Compute: inMiB(150)},
			Devices: map[string]DeviceWidth{"NPU0": {}}}},
		regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"prefill-device": "NPU0", "prefill-slots": "2", "prefill-slots-on-demand": "on", "device": "NPU0"},
		check: func(t *testing.T, p Plan) { assert.InDelta(t, 1.8e9, float64(p.Figures.Cache), 0.35e9) },
	},
	{
		name: "laptop with room for one slot", why: "two do not fit, one does, and the plan says which",
		machine: laptop(gib(3.3), gib(9.6)), model: qwen, placement: Placement{Projection: Projection{Width: 4096, At: Reserve{Context: inMiB(80), Compute: inMiB(600)}, Half: Reserve{Context: inMiB(80), Compute: inMiB(300)},
			Devices: map[string]DeviceWidth{"GPU0": {At: inMiB(600), Half: inMiB(300)}}}},
		regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"prefill-device": "GPU0", "prefill-slots": "1"}, says: map[string]string{"prefill-slots": "since two do not fit"},
	},
	{
		name: "laptop whose slots are held by hand", why: "not in turn: they are in the total, and the cache is smaller for it",
		machine: laptop(gib(8.3), gib(9.6)), model: qwen, args: []string{"--no-prefill-slots-on-demand"}, placement: projection("GPU0"), regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"prefill-device": "GPU0", "prefill-slots-on-demand": "off"},
		check: func(t *testing.T, p Plan) { assert.Equal(t, Chosen, p.Ledger.Row(RowSlots).Kind) },
	},
	{
		name: "laptop with one slot by hand", why: "a caller's number of slots is the only one tried",
		machine: laptop(gib(8.3), gib(9.6)), model: qwen, args: []string{"--prefill-slots", "1"}, placement: projection("GPU0"), regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"prefill-device": "GPU0", "prefill-slots": "1"},
	},
	{
		name: "graphics device that loses by less than the margin", why: "a device must win by 10%, not merely win",
		machine: with(laptop(gib(8.3), gib(9.6)), func(m *machine.Profile) { m.Devices[0].WideRate = machine.Known(1.09*198*perGiB, probed) }),
		model:   qwen, regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"prefill-device": ""},
		says: map[string]string{"prefill-device": "does not win by 10%"},
	},
	{
		name: "graphics device that wins by just more", why: "the other side of the margin",
		machine: with(laptop(gib(8.3), gib(9.6)), func(m *machine.Profile) { m.Devices[0].WideRate = machine.Known(1.11*198*perGiB, probed) }),
		model:   qwen, regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"prefill-device": "GPU0"},
	},
	{
		name: "graphics device of half precision", why: "off by 4.4e-4: what upstream calls the same matmul",
		machine: with(laptop(gib(8.3), gib(9.6)), func(m *machine.Profile) { m.Devices[0].WideError = machine.Known(4.4e-4, probed) }),
		model:   qwen, regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"prefill-device": "GPU0"},
		says: map[string]string{"prefill-device": "4.4e-04"},
	},
	{
		name: "graphics device with a wrong kernel", why: "off by the size of the answer: its rate is not looked at",
		machine: with(laptop(gib(8.3), gib(9.6)), func(m *machine.Profile) {
			m.Devices[0].WideError, m.Devices[0].ReadError = machine.Known(0.9, probed), machine.Known(0.9, probed)
		}),
		model: qwen, regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"prefill-device": ""},
		says: map[string]string{"prefill-device": "is not the host's", "device-excluded": "9.0e-01"},
	},
	{
		name: "device that does not do what it advertises", why: "handed a pointer it did not compute out of it: excluded before its rates are looked at",
		machine: with(laptop(gib(8.3), gib(9.6)), func(m *machine.Profile) {
			m.Devices[0].Usable = machine.No("handed memory of the host's, it computed something else")
		}),
		model: qwen, regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"prefill-device": ""},
		says: map[string]string{"device-excluded": "computed something else", "prefill-device": "it is unusable"},
	},
	{
		name: "device that runs no wide graph", why: "unmeasured, never slow: it is named with the reason",
		machine: with(laptop(gib(8.3), gib(9.6)), func(m *machine.Profile) {
			m.Devices[0].WideRate = machine.Unknown[float64]("it does not run the model's 2-bit type")
		}),
		model: qwen, regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"prefill-device": ""},
		says: map[string]string{"prefill-device": "2-bit type"},
	},
	{
		name: "device that lacks one of the model's types", why: "a device runs all of them or none",
		machine: with(laptop(gib(8.3), gib(9.6)), func(m *machine.Profile) { m.Devices[0].RunsExperts = machine.No("not Q6_K") }),
		model:   qwen, regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"prefill-device": ""}, says: map[string]string{"prefill-device": "not Q6_K"},
	},
	{
		name: "device that was compared at one width only", why: "a batched kernel is not the one-token kernel",
		machine: with(laptop(gib(8.3), gib(9.6)), func(m *machine.Profile) { m.Devices[0].WideError = machine.Unknown[float64]("") }),
		model:   qwen, regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"prefill-device": ""}, says: map[string]string{"prefill-device": "not compared"},
	},
	{
		name: "host that was not measured wide", why: "there is nothing to win against",
		machine: with(laptop(gib(8.3), gib(9.6)), func(m *machine.Profile) { m.Cores.WideRate = machine.Unknown[float64]("") }),
		model:   qwen, regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"prefill-device": ""}, says: map[string]string{"prefill-device": "the host was not measured"},
	},
	{
		name: "phone of 2020 whose driver ends the process", why: "kept out of everything, and the host carries the run",
		machine: with(phone(gib(4.6)), func(m *machine.Profile) {
			d := npu()
			d.Usable = machine.No("its probe ended the process that ran it, signal 11")
			m.Devices = []machine.Device{d}
		}),
		model: qwenQ4, regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"prefill-device": "", "device": ""}, says: map[string]string{"device-excluded": "signal 11"},
	},
	{
		name: "two devices, the faster too large", why: "the next is tried, and the first refusal is said",
		machine: with(laptop(gib(5), gib(9.6)), func(m *machine.Profile) {
			first := sharedGPU("GPU1", 60*perGiB, 3000*perGiB)
			m.Devices = append(m.Devices, first)
		}),
		model: qwen, placement: Placement{Projection: Projection{Width: 4096, At: Reserve{Context: inMiB(80), Compute: inMiB(200)}, Half: Reserve{Context: inMiB(80), Compute: inMiB(100)},
			Devices: map[string]DeviceWidth{"GPU0": {At: inMiB(200), Half: inMiB(100)}, "GPU1": {At: gib(9), Half: gib(9)}}}},
		regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"prefill-device": "GPU0"}, says: map[string]string{"prefill-device": "GPU1: with one slot"},
	},
	{
		name: "prefill device named by hand", why: "left alone: no best effort, and its row is charged whatever it does to the cache",
		machine: laptop(gib(3.4), gib(9.6)), model: qwen, args: []string{"--prefill-device", "GPU0"}, regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"prefill-device": "GPU0", "prefill-best-effort": "off", "device": "GPU0"}, source: map[string]Source{"prefill-device": Operator},
		check: func(t *testing.T, p Plan) { assert.True(t, p.Ledger.Row(RowDevice).ByHand) },
	},
	{
		name: "narrow graph by hand", why: "no graph is as wide as the narrowest a device is given",
		machine: laptop(gib(8.3), gib(9.6)), model: qwen, args: []string{"--ubatch", "16"}, regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"prefill-device": ""}, says: map[string]string{"prefill-device": "32 tokens"},
	},
	{
		name: "phone with a graphics device and no wire limit", why: "a total of zero is nothing to outbid: the device is charged to what may be held alone",
		machine: with(phone(gib(5.5)), func(m *machine.Profile) {
			m.Memory.ExemptTotal, m.Memory.ExemptStore = machine.Known(int64(0), probed), machine.No(probed)
			d := sharedGPU("GPU0", 28*perGiB, 17.8*37*perGiB)
			m.Devices = []machine.Device{d}
		}),
		model: qwenQ4, args: []string{"-c", "2048"}, regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"prefill-device": "GPU0"},
		check: func(t *testing.T, p Plan) { assert.Zero(t, p.Ledger.Row(RowDevice).Exempt) },
	},
	{
		name: "laptop whose wire limit a device would take", why: "what decode had protected stays protected",
		machine: laptop(gib(9), gib(2.4)), model: qwen, placement: projection("GPU0"), regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"prefill-device": "", "dense-weights": "pinned"},
		says:  map[string]string{"prefill-device": "would lose its lock"},
	},

	// Cards with memory of their own.
	{
		name: "desktop with a card and no placement", why: "a card's own memory costs this pool nothing: slots stay between prompts",
		machine: with(desktop(gib(32), gib(12)), func(m *machine.Profile) { m.Devices = []machine.Device{card("CARD0", gib(16))} }), model: qwen,
		regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"prefill-device": "CARD0", "prefill-slots": "2", "prefill-slots-on-demand": "off"},
		says:  map[string]string{"prefill-device": "out of its own 15.5 GiB free", "device-crossing": "was not measured"},
		check: func(t *testing.T, p Plan) { assert.Zero(t, p.Ledger.Row(RowDevice).Bytes) },
	},
	{
		name: "desktop with a card that is full", why: "checked against its own free memory",
		machine: with(desktop(gib(32), gib(12)), func(m *machine.Profile) {
			d := card("CARD0", gib(16))
			d.Free = machine.Known(inMiB(300), probed)
			m.Devices = []machine.Device{d}
		}),
		model: qwen, regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"prefill-device": ""}, says: map[string]string{"prefill-device": "300 MiB free"},
	},
	{
		name: "unified box read as discrete", why: "it reads like a card and draws on the host: measured, so its placement is quoted and not applied",
		machine: with(desktop(gib(128), gib(100)), func(m *machine.Profile) {
			m.Name = "unified box of 128 GB"
			m.Cores.ReadRate = machine.Known(110*perGiB, probed)
			m.Devices = []machine.Device{sharedGPU("GPU0", 230*perGiB, 4000*perGiB)}
			m.Devices[0].HostPointer = machine.Unknown[bool]("not advertised")
		}),
		model: func() shape { s := big; s.layers = 60; return s }(), placement: Placement{Layers: 40, Devices: []DeviceShare{{"GPU0", 40, gib(80)}}},
		regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"n-gpu-layers": "0", "prefill-device": "GPU0", "device": "GPU0"},
		says:  map[string]string{"placement-declined": "draws on the host's memory", "device-host-pointer": "no evidence", "device-crossing": "was not measured"},
	},
	{
		name: "unified box with a priced crossing", why: "moving the dense weights would save less than the crossings cost",
		machine: with(desktop(gib(128), gib(60)), func(m *machine.Profile) {
			m.Cores.ReadRate = machine.Known(110*perGiB, probed)
			m.Devices = []machine.Device{sharedGPU("GPU0", 230*perGiB, 4000*perGiB)}
			m.Devices[0].Crossing = machine.Known(1.2e-3, probed)
		}),
		model: big, regime: ExpertsStream, outcome: Streams, says: map[string]string{"device-crossing": "crossings of 1.2 ms"},
	},
	{
		name: "unified box with a cheap crossing", why: "it might win, and nothing moves a decode yet: the saving is said, not taken",
		machine: with(desktop(gib(128), gib(60)), func(m *machine.Profile) {
			m.Cores.ReadRate = machine.Known(50*perGiB, probed)
			m.Devices = []machine.Device{sharedGPU("GPU0", 230*perGiB, 4000*perGiB)}
			m.Devices[0].Crossing = machine.Known(20e-6, probed)
		}),
		model: big, regime: ExpertsStream, outcome: Streams, says: map[string]string{"device-unapplied": "nothing here moves a decode yet"},
	},
	{
		name: "discrete device at 20 GiB/s against 12", why: "bandwidth alone would have moved it; the crossings are not priced, so nothing moves",
		machine: with(desktop(gib(32), gib(12)), func(m *machine.Profile) {
			d := card("CARD0", gib(8))
			d.ReadRate, d.WideRate = machine.Known(20*perGiB, probed), machine.Unknown[float64]("")
			m.Devices = []machine.Device{d}
		}),
		model: qwen, regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"device": ""}, says: map[string]string{"device-crossing": "no group is placed"},
	},
	{
		name: "workstation with two 16 GB cards", why: "the placement is loaded as projected, split included; the rest streams, and no prefill device is armed over it",
		machine: with(desktop(gib(32), gib(14)), func(m *machine.Profile) {
			m.Devices = []machine.Device{card("CARD0", gib(16)), card("CARD1", gib(16))}
			for i := range m.Devices {
				m.Devices[i].Crossing = machine.Known(30e-6, probed)
			}
		}),
		model: big, placement: Placement{Layers: 11, Devices: []DeviceShare{{"CARD0", 6, gib(15)}, {"CARD1", 5, gib(13)}},
			Projection: Projection{Width: 4096, At: Reserve{Context: inMiB(300), Compute: inMiB(400)}, Half: Reserve{Context: inMiB(300), Compute: inMiB(200)}}},
		regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"n-gpu-layers": "11", "device-split": "CARD0=6,CARD1=5", "device": "CARD0,CARD1", "prefill-device": ""},
		says:  map[string]string{"prefill-device": "layers are placed on devices"},
		check: func(t *testing.T, p Plan) {
			assert.Positive(t, p.Figures.Placed)
			assert.True(t, p.Prediction.Known)
			assert.Greater(t, p.Prediction.Compute, 0.)
		},
	},
	{
		name: "workstation whose cards take every layer", why: "nothing is left to stream",
		machine: with(desktop(gib(32), gib(14)), func(m *machine.Profile) {
			m.Devices = []machine.Device{card("CARD0", gib(24))}
		}),
		model: qwen, placement: Placement{Layers: 41, Devices: []DeviceShare{{"CARD0", 41, gib(20)}}},
		regime: ExpertsStream, outcome: OnDevices, knobs: map[string]string{"moe-stream": "off", "n-gpu-layers": "41"},
	},
	{
		name: "workstation whose residual fits", why: "what the card leaves is held: experts resident on the host, no streaming",
		machine: with(desktop(gib(32), gib(14)), func(m *machine.Profile) {
			m.Devices = []machine.Device{card("CARD0", gib(16))}
		}),
		model: qwen, placement: Placement{Layers: 41, Devices: []DeviceShare{{"CARD0", 41, gib(14)}},
			Overrides: []Override{{`blk\.(1[0-9]|[0-9])\.ffn_.*_exps.*`, "CPU"}}},
		regime: ExpertsStream, outcome: Resident, knobs: map[string]string{"moe-stream": "off"},
		check: func(t *testing.T, p Plan) {
			assert.InDelta(t, 20./40, float64(p.Figures.Experts)/float64(p.Figures.Experts+expertsOnDevice(p)), 0.01)
		},
	},
	{
		name: "card that takes part of a layer's experts", why: "a layer's experts are served as a set: all of that layer come to the host",
		machine: with(desktop(gib(32), gib(8)), func(m *machine.Profile) {
			m.Devices = []machine.Device{card("CARD0", gib(16))}
		}),
		model: qwen, placement: Placement{Layers: 41, Devices: []DeviceShare{{"CARD0", 41, gib(14)}},
			Overrides: []Override{{`blk\.(1[0-9]|[0-9])\.ffn_.*_exps.*`, "CPU"}, {`blk\.20\.ffn_down_exps.*`, "CPU"}}},
		regime: ExpertsStream, outcome: Streams,
		check: func(t *testing.T, p Plan) {
			assert.True(t, strings.HasPrefix(p.Params.Text("override-tensor"), `^blk\.20\.ffn_(gate|up|gate_up|down)_exps\.weight$=CPU,`), p.Params.Text("override-tensor"))
		},
	},
	{
		name: "card that states no size", why: "a pool that cannot be budgeted against: the placement is not applied",
		machine: with(desktop(gib(32), gib(12)), func(m *machine.Profile) {
			d := card("CARD0", gib(16))
			d.Total, d.Free = machine.Unknown[int64]("reports none"), machine.Unknown[int64]("reports none")
			m.Devices = []machine.Device{d}
		}),
		model: qwen, placement: Placement{Layers: 20, Devices: []DeviceShare{{"CARD0", 20, inMiB(2106)}}}, regime: ExpertsStream, outcome: Streams,
		says: map[string]string{"placement-declined": "does not say how much"}, knobs: map[string]string{"n-gpu-layers": "0"},
	},
	{
		name: "card whose memory nobody asked about", why: "only a known pool of its own adds capacity",
		machine: with(desktop(gib(32), gib(12)), func(m *machine.Profile) {
			d := card("CARD0", gib(16))
			d.SharesHost = machine.Unknown[bool]("a description that matches no device")
			m.Devices = []machine.Device{d}
		}),
		model: qwen, placement: Placement{Layers: 20, Devices: []DeviceShare{{"CARD0", 20, gib(9)}}}, regime: ExpertsStream, outcome: Streams,
		says: map[string]string{"placement-declined": "was not measured"},
	},
	{
		name: "neural device beside a card", why: "every device that was given bytes is asked, not the machine",
		machine: with(desktop(gib(32), gib(12)), func(m *machine.Profile) {
			m.Devices = []machine.Device{card("CARD0", gib(16)), sharedGPU("GPU1", 20*perGiB, 100*perGiB)}
		}),
		model: qwen, placement: Placement{Layers: 20, Devices: []DeviceShare{{"CARD0", 10, gib(9)}, {"GPU1", 10, inMiB(2106)}}}, regime: ExpertsStream, outcome: Streams,
		says: map[string]string{"placement-declined": "device GPU1 draws on the host's memory"},
	},
	{
		name: "layers placed by hand", why: "a pin is a placement: what it leaves to the host is what streams",
		machine: with(desktop(gib(32), gib(12)), func(m *machine.Profile) { m.Devices = []machine.Device{card("CARD0", gib(16))} }),
		model:   qwen, args: []string{"-ngl", "10", "-dev", "CARD0"}, placement: Placement{Layers: 20, Devices: []DeviceShare{{"CARD0", 20, gib(9)}}}, regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"n-gpu-layers": "10", "device": "CARD0"}, says: map[string]string{"placement": "by hand"},
	},

	// Sessions that can do less than a plan may ask.
	{
		name: "laptop under a session that uses the host alone", why: "a plan claims nothing that is not carried out",
		machine: laptop(gib(8.3), gib(9.6)), model: qwen, session: &Abilities{}, regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"prefill-device": "", "device": "", "cache-pin": "off", "cache-pin-fit": "off"},
		says:  map[string]string{"prefill-device": "host alone", "cache-pin": "does not lock"},
	},
	{
		name: "workstation under a session that places no layers", why: "the placement is quoted and not applied",
		machine: with(desktop(gib(32), gib(14)), func(m *machine.Profile) { m.Devices = []machine.Device{card("CARD0", gib(24))} }),
		model:   qwen, session: &Abilities{}, placement: Placement{Layers: 41, Devices: []DeviceShare{{"CARD0", 41, gib(20)}}},
		regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"n-gpu-layers": "0"}, says: map[string]string{"placement-declined": "host alone"},
	},

	// Backends.
	{
		name: "build without backends", why: "a property of the build is not printed as one of the room",
		machine: with(desktop(gib(32), gib(12)), func(m *machine.Profile) { m.Backends.Loaded = machine.Known(0, probed) }), model: qwen,
		regime: ExpertsStream, outcome: Streams, says: map[string]string{"placement": "this build carries no backend"},
	},
	{
		name: "backends that found nothing", why: "this one is about the machine",
		machine: desktop(gib(32), gib(12)), model: qwen, regime: ExpertsStream, outcome: Streams, says: map[string]string{"placement": "no accelerator here"},
	},

	// Storage.
	{
		name: "drive whose lanes cannot be told apart", why: "inside the tolerance more lanes win: 4.648 against 5.261 tokens per second where the probe saw no difference",
		machine: with(desktop(gib(32), gib(12)), func(m *machine.Profile) {
			m.Storage.Curve = []machine.Rate{{Size: 664 << 10, Lanes: 1, Rate: 2000 * perMiB}, {Size: 664 << 10, Lanes: 2, Rate: 2861 * perMiB}, {Size: 664 << 10, Lanes: 4, Rate: 2832 * perMiB}}
		}),
		model: qwen, regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"io-threads": "4"},
	},
	{
		name: "drive that loses with lanes", why: "beyond the tolerance the faster count wins",
		machine: with(desktop(gib(32), gib(12)), func(m *machine.Profile) {
			m.Storage.Curve = []machine.Rate{{Size: 664 << 10, Lanes: 1, Rate: 90 * perMiB}, {Size: 664 << 10, Lanes: 2, Rate: 95 * perMiB}, {Size: 664 << 10, Lanes: 4, Rate: 70 * perMiB}}
		}),
		model: qwen, regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"io-threads": "2"},
	},
	{
		name: "drive read on more lanes than a run has", why: "what a run cannot do is no choice: the most it can have within the tolerance",
		machine: with(desktop(gib(32), gib(12)), func(m *machine.Profile) {
			m.Storage.Curve = []machine.Rate{{Size: 664 << 10, Lanes: 64, Rate: 2000 * perMiB}, {Size: 664 << 10, Lanes: 256, Rate: 2900 * perMiB}}
		}),
		model: qwen, regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"io-threads": "64"},
		check: func(t *testing.T, p Plan) { assert.Equal(t, 2000*perMiB, p.Figures.BestRate) },
	},
	{
		name: "drive read on such lanes alone", why: "it is as good as not measured",
		machine: with(desktop(gib(32), gib(12)), func(m *machine.Profile) {
			m.Storage.Curve = []machine.Rate{{Size: 664 << 10, Lanes: 256, Rate: 2900 * perMiB}}
		}),
		model: qwen, regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"io-threads": "4"}, source: map[string]Source{"io-threads": Unprobed},
	},
	{
		name: "drive whose rate will not repeat", why: "1116, 1526 and 2583 MiB/s in three samples: the spread is quoted",
		machine: with(desktop(gib(32), gib(12)), func(m *machine.Profile) {
			m.Storage.Curve = []machine.Rate{{Size: 664 << 10, Lanes: 4, Rate: 1526 * perMiB, Spread: 2583. / 1116}}
		}),
		model: qwen, regime: ExpertsStream, outcome: Streams, says: map[string]string{"storage-spread": "differ by 2.31x, more than 1.25x"},
	},
	{
		name: "drive whose rate repeats", why: "2832, 2845 and 2861: nothing to quote",
		machine: with(desktop(gib(32), gib(12)), func(m *machine.Profile) {
			m.Storage.Curve = []machine.Rate{{Size: 664 << 10, Lanes: 4, Rate: 2845 * perMiB, Spread: 2861. / 2832}}
		}),
		model: qwen, regime: ExpertsStream, outcome: Streams, silent: []string{"storage-spread"},
	},
	{
		name: "lanes by hand", why: "the point of the curve that is nearest from below is what the plan prices",
		machine: desktop(gib(32), gib(12)), model: qwen, args: []string{"--io-threads", "3"}, regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"io-threads": "3"}, source: map[string]Source{"io-threads": Operator},
		check: func(t *testing.T, p Plan) { assert.Less(t, p.Figures.Rate, p.Figures.BestRate) },
	},
	{
		name: "file system without direct reads", why: "measured no: through the file cache",
		machine: with(desktop(gib(32), gib(12)), func(m *machine.Profile) { m.Storage.Direct = machine.No("reading back differs") }), model: qwen,
		regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"odirect": "off"},
	},
	{
		name: "machine where taking turns is faster", why: "a measurement takes the overlap back",
		machine: with(desktop(gib(32), gib(12)), func(m *machine.Profile) { m.Storage.OverlapGain = machine.Known(0.9, probed) }), model: qwen,
		regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"overlap": "off"},
		check: func(t *testing.T, p Plan) {
			assert.InDelta(t, p.Prediction.Compute+p.Prediction.Read, p.Prediction.PerToken, 1e-9)
			assert.Less(t, p.Prediction.Fastest, p.Prediction.PerToken)
		},
	},
	{
		name: "machine where overlap was measured to pay", why: "the other side",
		machine: with(desktop(gib(32), gib(12)), func(m *machine.Profile) { m.Storage.OverlapGain = machine.Known(1.4, probed) }), model: qwen,
		regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"overlap": "on"}, source: map[string]Source{"overlap": Measured},
	},
	{
		name: "overlap off by hand", why: "reading and computing take turns and the prediction is their sum",
		machine: desktop(gib(32), gib(12)), model: qwen, args: []string{"--no-overlap"}, regime: ExpertsStream, outcome: Streams,
		check: func(t *testing.T, p Plan) {
			assert.InDelta(t, p.Prediction.Compute+p.Prediction.Read, p.Prediction.PerToken, 1e-9)
		},
	},
	{
		name: "memory as slow as its faults are fast", why: "the cost model, not a habit, puts the dense set first: where a refault is nearly free the cache outranks it",
		machine: with(desktop(gib(32), gib(3)), func(m *machine.Profile) {
			m.Storage.Refault = machine.Known(300000*perMiB, probed)
			m.Storage.Curve = []machine.Rate{{Size: 600 << 10, Lanes: 4, Rate: 500 * perMiB}}
		}),
		model: qwen, args: []string{"-c", "1024"}, regime: ExpertsStream, outcome: Streams, knobs: map[string]string{"dense-weights": "mmap"},
		check: func(t *testing.T, p Plan) { assert.Equal(t, candidateFloor, p.Candidates[0].Name) },
	},

	{
		name: "such a machine whose first of a cache serves most", why: "each candidate has its own place: the cycle first, then the dense set, then the rest of the cache",
		machine: with(desktop(gib(32), gib(4)), func(m *machine.Profile) {
			m.Storage.Refault = machine.Known(40000*perMiB, probed)
			m.Storage.Curve = []machine.Rate{{Size: 600 << 10, Lanes: 4, Rate: 500 * perMiB}}
		}),
		model: qwen, args: []string{"-c", "1024"}, history: Credit{Runs: 1, CacheBytes: inMiB(700), HitRate: 0.9}, regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"dense-weights": "anon"},
		check: func(t *testing.T, p Plan) {
			require.Len(t, p.Candidates, 3)
			assert.Equal(t, []string{candidateFloor, candidateDense, candidateCache}, []string{p.Candidates[0].Name, p.Candidates[1].Name, p.Candidates[2].Name})
			assert.Positive(t, p.Candidates[1].Taken)
		},
	},

	// Models.
	{
		name: "dense model", why: "there is nothing to stream",
		machine: desktop(gib(32), gib(12)), model: dense7, regime: Fits, outcome: NoExperts, knobs: map[string]string{"moe-stream": "off"},
	},
	{
		name: "dense model larger than memory", why: "nothing to stream either; its cost is the mapping's",
		machine: desktop(gib(4), gib(1.5)), model: dense7, regime: DenseOversized, outcome: NoExperts,
		check: func(t *testing.T, p Plan) { assert.Equal(t, p.Prediction.Bound, p.Prediction.PerToken) },
	},
	{
		name: "dense model told to stream", why: "a pin stands in the line, and there is still nothing to stream",
		machine: desktop(gib(32), gib(12)), model: dense7, args: []string{"--moe-stream"}, regime: Fits, outcome: NoExperts,
		knobs: map[string]string{"moe-stream": "on"}, silent: []string{"cache-mb"},
	},
	{
		name: "fits, and told to stream", why: "a person's word stands: all experts are cached",
		machine: desktop(gib(64), gib(48)), model: qwen, args: []string{"--moe-stream"}, regime: Fits, outcome: Streams,
		knobs: map[string]string{"moe-stream": "on"}, says: map[string]string{"cache-mb": "all of the experts"},
		check: func(t *testing.T, p Plan) { assert.InDelta(t, 1, p.Prediction.HitRate, 1e-9) },
	},
	{
		name: "does not fit, and told not to stream", why: "a person's word stands: the file is mapped and its cost is the mapping's",
		machine: desktop(gib(32), gib(12)), model: qwen, args: []string{"--no-moe-stream"}, regime: ExpertsStream, outcome: ByHand,
		knobs: map[string]string{"moe-stream": "off"}, silent: []string{"cache-mb"},
		check: func(t *testing.T, p Plan) { assert.Equal(t, p.Prediction.Bound, p.Prediction.PerToken) },
	},
	{
		name: "model with leading dense layers and a fused projection", why: "the cycle is summed over the tensors the file carries",
		machine: desktop(gib(32), gib(6)), model: func() shape {
			s := qwen
			s.leading, s.fused, s.mtp, s.headShard, s.tied = 3, true, 1, true, true
			return s
		}(),
		regime: ExpertsStream, outcome: Streams,
		check: func(t *testing.T, p Plan) {
			assert.InDelta(t, 581.*37/40, float64(p.Figures.Cycle)/(1<<20), 3)
			assert.Equal(t, p.Figures.Slice, int64(2*589824), "a fused stride is twice a split one")
		},
	},
	{
		name: "model whose attention is of a kind not met here", why: "its context is charged for at more than it can be",
		machine: desktop(gib(32), gib(12)), model: func() shape { s := qwen; s.omitAttention = true; return s }(), args: []string{"-ctk", "q8_0"}, regime: ExpertsStream, outcome: Streams,
		check: func(t *testing.T, p Plan) {
			assert.Equal(t, int64(float64(40*2048*4096)*(2+34./32)), p.Ledger.Row(RowContext).Bytes)
		},
	},
	{
		name: "model with a short context", why: "4096 tokens, or the model's own where that is less",
		machine: desktop(gib(32), gib(12)), model: func() shape { s := qwen; s.context = 2048; return s }(), regime: ExpertsStream, outcome: Streams,
		knobs: map[string]string{"ctx-size": "2048"},
	},
	{
		name: "the model's whole context by hand", why: "0 is the model's own, and it is charged for",
		machine: desktop(gib(64), gib(19)), model: qwen, args: []string{"-c", "0"}, regime: DenseOversized, outcome: Streams,
		knobs: map[string]string{"ctx-size": "0"}, source: map[string]Source{"ctx-size": Operator},
		check: func(t *testing.T, p Plan) { assert.Greater(t, p.Ledger.Row(RowContext).Bytes, gib(15)) },
	},

	// History.
	{
		name: "machine that ran this model before", why: "13% held served 61.9% there: the credit is measured, not linear",
		machine: desktop(gib(32), gib(12)), model: qwen, history: Credit{Runs: 3, CacheBytes: gib(18.15 * 0.13), HitRate: 0.619}, regime: ExpertsStream, outcome: Streams,
		says: map[string]string{"cache-mb": "from 3 runs"},
		check: func(t *testing.T, p Plan) {
			assert.Equal(t, Measured, p.Prediction.HitSource)
			assert.Greater(t, p.Prediction.HitRate, 0.619)
			assert.Less(t, p.Prediction.HitRate, 1.)
		},
	},
	{
		name: "machine that refused a lock before", why: "a refusal is data: the next plan asks for what was granted",
		machine: laptop(gib(8), gib(9.6)), model: qwen, history: Credit{LockRefused: true, CacheLocked: gib(3), DenseLocked: gib(2)}, regime: ExpertsStream, outcome: Streams,
		says: map[string]string{"cache-lock": "what an earlier run here was granted"},
		check: func(t *testing.T, p Plan) {
			assert.LessOrEqual(t, p.Figures.Cache, gib(3))
			assert.Positive(t, p.Figures.CacheLocked)
		},
	},
	{
		name: "machine that never ran it", why: "linear in the share held, which is pessimistic and said to be derived",
		machine: desktop(gib(32), gib(12)), model: qwen, regime: ExpertsStream, outcome: Streams,
		check: func(t *testing.T, p Plan) {
			assert.Equal(t, Derived, p.Prediction.HitSource)
			assert.InDelta(t, float64(p.Figures.Cache)/float64(p.Figures.Experts), p.Prediction.HitRate, 1e-3)
		},
	},
	{
		name: "machine that ran it with all in the cache", why: "a cache that held everything says nothing of one that does not: linear, and said to be derived",
		machine: desktop(gib(32), gib(6)), model: qwen, history: Credit{Runs: 1, CacheBytes: gib(20), HitRate: 0.9}, regime: ExpertsStream, outcome: Streams,
		says:  map[string]string{"cache-mb": "linearly in the share held"},
		check: func(t *testing.T, p Plan) { assert.Equal(t, Derived, p.Prediction.HitSource) },
	},
	{
		name: "machine that ran it with a larger cache", why: "below what was measured it is the line from nothing",
		machine: desktop(gib(32), gib(6)), model: qwen, history: Credit{Runs: 1, CacheBytes: gib(9), HitRate: 0.8}, regime: ExpertsStream, outcome: Streams,
		check: func(t *testing.T, p Plan) { assert.Less(t, p.Prediction.HitRate, 0.8) },
	},
}

func expertsOnDevice(p Plan) int64 { return p.Figures.Experts } // half of the layers are on either side

func (e entry) plan(t require.TestingT) Plan { return Make(e.input(t)) }

func (e entry) input(t require.TestingT) Input {
	session := able
	if e.session != nil {
		session = *e.session
	}
	return Input{Machine: e.machine, Model: e.model.profile(t), Placement: e.placement, History: e.history,
		Params: request(t, e.args...), Policy: DefaultPolicy(), Session: session}
}

func TestCatalogue(t *testing.T) {
	t.Parallel()
	require.GreaterOrEqual(t, len(catalogue), 40)
	names := map[string]bool{}
	for _, e := range catalogue {
		assert.False(t, names[e.name], "two machines are called %s", e.name)
		names[e.name] = true
		assert.NotEmpty(t, e.why, e.name)
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, e.machine.Check(), "a catalogue machine must be possible")
			p := e.plan(t)
			assert.Equal(t, e.regime, p.Regime, e.why)
			assert.Equal(t, e.outcome, p.Outcome, e.why)
			for knob, want := range e.knobs {
				assert.Equal(t, want, p.Params.Text(knob), "%s: %s", knob, e.why)
			}
			for knob, part := range e.says {
				d, ok := p.find(knob)
				if assert.True(t, ok, "nothing is said of %s: %s", knob, e.why) {
					assert.True(t, anySays(p, knob, part), "%s = %s: %s\nshould say %q", knob, d.Value, d.Reason, part)
				}
			}
			for knob, want := range e.source {
				d, ok := p.find(knob)
				assert.True(t, ok, "nothing is said of %s", knob)
				assert.Equal(t, want, d.Source, "%s: %s", knob, e.why)
			}
			for _, knob := range e.silent {
				_, ok := p.find(knob)
				assert.False(t, ok, "%s is spoken of: %s", knob, e.why)
			}
			if e.check != nil {
				e.check(t, p)
			}
		})
	}
}

// anySays looks in every decision about a knob: there may be one per device.
func anySays(p Plan, knob, part string) bool {
	for _, d := range p.Decisions {
		if d.Knob == knob && (strings.Contains(d.Reason, part) || strings.Contains(d.Value, part)) {
			return true
		}
	}
	return false
}
