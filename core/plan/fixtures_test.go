package plan

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/gguf"
	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/core/params"
)

// gib and mb are sizes as tests write them.
func gib(n float64) int64   { return int64(n * (1 << 30)) }
func inMiB(n float64) int64 { return int64(n * (1 << 20)) }

// shape is a model to plan for.
type shape struct {
	name                       string
	layers, leading            int // leading layers have no experts
	experts, used              int
	embedding, hidden, kv      int64
	vocab, context             int
	gateUp, down, downOdd      gguf.Type // down of odd layers
	dense                      gguf.Type
	filler                     int64 // rows of a further dense matrix per layer
	tied, fused                bool
	mtp                        int
	headShard                  bool // the first shard holds no experts
	omitAttention, noEmbedding bool
}

// qwen is the shape of Qwen3.6-35B-A3B at Q4_K_M: 40 layers, 256 experts of which 8 are used, embedding 2048, expert width
// 512, and down at Q6_K in half of the layers.
var qwen = shape{name: "35B-A3B Q4_K_M", layers: 40, experts: 256, used: 8, embedding: 2048, hidden: 512, kv: 512, vocab: 248320,
	context: 262144, gateUp: gguf.Q4_K, down: gguf.Q4_K, downOdd: gguf.Q6_K, dense: gguf.Q4_K, filler: 20480}

// qwenQ4 is the same at Q4_0, as the phones ran it.
var qwenQ4 = func() shape {
	s := qwen
	s.name, s.gateUp, s.down, s.downOdd = "35B-A3B Q4_0", gguf.Q4_0, gguf.Q4_0, gguf.Q4_0
	return s
}()

// big is a model of 91 GB at 2 bits with a dense set of 6.7 GB.
var big = shape{name: "235B 2-bit", layers: 33, experts: 384, used: 8, embedding: 6144, hidden: 1280, kv: 1024, vocab: 152064,
	context: 131072, gateUp: gguf.IQ2_XS, down: gguf.IQ2_XS, downOdd: gguf.Q2_K, dense: gguf.Q4_K, filler: 44000}

// small is an 8B-class model: 5 GiB of experts beside a small dense set.
var small = shape{name: "8B-A1B Q4_K", layers: 24, experts: 64, used: 4, embedding: 1536, hidden: 1408, kv: 512, vocab: 50304,
	context: 32768, gateUp: gguf.Q4_K, down: gguf.Q4_0, downOdd: gguf.Q4_0, dense: gguf.Q4_K, filler: 4096}

// dense7 has no experts.
var dense7 = shape{name: "7B dense", layers: 32, embedding: 4096, hidden: 11008, kv: 1024, vocab: 32000, context: 8192, dense: gguf.Q4_K, filler: 36000}

func (s shape) profile(t require.TestingT) *model.Profile {
	p := model.Profile{Name: s.name, Architecture: "test", Context: s.context, Embedding: int(s.embedding), Vocab: s.vocab,
		Layers: s.layers, ExpertCount: s.experts, ExpertUsed: s.used, MTPLayers: s.mtp}
	offsets := []int64{4096, 4096}
	add := func(name string, kind gguf.Type, dims ...int64) {
		tensor := model.Tensor{Name: name, Type: kind, Dims: [4]int64{1, 1, 1, 1}}
		copy(tensor.Dims[:], dims)
		if s.headShard && len(dims) == 3 {
			tensor.Shard = 1
		}
		tensor.Offset = offsets[tensor.Shard]
		offsets[tensor.Shard] += tensor.Bytes()
		p.Tensors = append(p.Tensors, tensor)
	}
	if !s.noEmbedding {
		add("token_embd.weight", s.dense, s.embedding, int64(s.vocab))
	}
	if !s.tied {
		add("output.weight", gguf.Q6_K, s.embedding, int64(s.vocab))
	}
	for l := range s.layers {
		if !s.omitAttention {
			add(fmt.Sprintf("blk.%d.attn_k.weight", l), s.dense, s.embedding, s.kv)
			add(fmt.Sprintf("blk.%d.attn_v.weight", l), s.dense, s.embedding, s.kv)
		}
		add(fmt.Sprintf("blk.%d.attn_output.weight", l), s.dense, s.embedding, max(s.filler, 256))
		if s.experts == 0 || l < s.leading {
			continue
		}
		down := s.down
		if l%2 == 1 {
			down = s.downOdd
		}
		if s.fused {
			add(fmt.Sprintf("blk.%d.ffn_gate_up_exps.weight", l), s.gateUp, s.embedding, 2*s.hidden, int64(s.experts))
		} else {
			add(fmt.Sprintf("blk.%d.ffn_gate_exps.weight", l), s.gateUp, s.embedding, s.hidden, int64(s.experts))
			add(fmt.Sprintf("blk.%d.ffn_up_exps.weight", l), s.gateUp, s.embedding, s.hidden, int64(s.experts))
		}
		add(fmt.Sprintf("blk.%d.ffn_down_exps.weight", l), down, s.hidden, s.embedding, int64(s.experts))
	}
	p.Shards = []model.Shard{{Name: "test-00001-of-00002.gguf", Bytes: offsets[0] + gib(1)}, {Name: "test-00002-of-00002.gguf", Bytes: offsets[1]}}
	if s.mtp > 0 {
		p.MTPBytes = inMiB(500)
	}
	m, err := model.New(p)
	require.NoError(t, err)
	return m
}

// request is what a person typed beside --auto.
func request(t require.TestingT, args ...string) *params.Set {
	s, err := params.Parse(append([]string{"--auto"}, args...), func(string) (string, bool) { return "", false })
	require.NoError(t, err)
	return s
}

const probed = "measured by the test"

// drive is a storage profile: the best rate of slices on four lanes, a little less on fewer, and the price of a refault.
func drive(rate, refault float64) machine.Storage {
	s := machine.Storage{Direct: machine.Yes(probed), Align: machine.Known(int64(4096), probed), From: probed,
		Refault: machine.Known(refault, probed)}
	for _, bytes := range []int64{128 << 10, 600 << 10, 4 << 20} {
		factor := min(1, 0.7+float64(bytes)/(2<<20))
		s.Curve = append(s.Curve,
			machine.Rate{Size: bytes, Lanes: 1, Rate: rate * 0.55 * factor, Spread: 1.02},
			machine.Rate{Size: bytes, Lanes: 2, Rate: rate * 0.85 * factor, Spread: 1.02},
			machine.Rate{Size: bytes, Lanes: 4, Rate: rate * factor, Spread: 1.02})
	}
	return s
}

const perMiB, perGiB = float64(1 << 20), float64(1 << 30)

// desktop swaps, has a good drive and no accelerator.
func desktop(total, available int64) machine.Profile {
	return machine.Profile{
		Name: "desktop",
		Memory: machine.Memory{
			Total: machine.Known(total, probed), Available: machine.Known(available, probed),
			Pressure:    machine.Known(machine.Swaps, probed),
			ExemptStore: machine.Yes(probed), ExemptTotal: machine.Known(int64(8<<20), probed), LockInPlace: machine.Known(int64(8<<20), probed),
			PageSize: machine.Known(int64(4096), probed),
		},
		Cores: machine.Cores{Physical: machine.Known(12, probed), Classes: []machine.CoreClass{{Count: 12, Frequency: 4_700_000_000}},
			ReadRate: machine.Known(12*perGiB, probed), WideRate: machine.Known(40*perGiB, probed)},
		Backends: machine.Backends{Linked: machine.Known(0, probed), Loaded: machine.Known(2, probed)},
		Storage:  drive(2800*perMiB, 24*perMiB),
	}
}

// laptop compresses, shares one memory between cores and a graphics device, and limits what may be wired in all.
func laptop(available, wirable int64) machine.Profile {
	m := desktop(gib(16), available)
	m.Name = "laptop of unified memory"
	m.Memory.Pressure = machine.Known(machine.Compresses, probed)
	m.Memory.ExemptTotal = machine.Known(wirable, probed)
	m.Memory.LockInPlace = machine.Known(wirable, probed)
	m.Memory.PageSize = machine.Known(int64(16384), probed)
	m.Cores = machine.Cores{Physical: machine.Known(10, probed), Classes: []machine.CoreClass{{Count: 4, Frequency: 4_400_000_000}, {Count: 6, Frequency: 2_900_000_000}},
		ReadRate: machine.Known(109*perGiB, probed), WideRate: machine.Known(198*perGiB, probed)}
	m.Storage = drive(6300*perMiB, 1200*perMiB)
	m.Devices = []machine.Device{sharedGPU("GPU0", 67*perGiB, 1512*perGiB)}
	return m
}

// sharedGPU draws on the host's memory and wires its buffers.
func sharedGPU(name string, read, wide float64) machine.Device {
	return machine.Device{Name: name, Description: "a graphics device", Usable: machine.Yes(probed), SharesHost: machine.Yes("asked the device"),
		Total: machine.Known(gib(16), probed), Free: machine.Known(gib(11), probed), HostBuffer: machine.Yes(probed), HostPointer: machine.Yes("advertised"),
		NeedsRepack: machine.No(probed), RunsExperts: machine.Yes(probed), Wires: machine.Yes(probed),
		ReadRate: machine.Known(read, probed), ReadError: machine.Known(1.6e-9, probed),
		WideRate: machine.Known(wide, probed), WideError: machine.Known(1.6e-7, probed)}
}

// card has memory of its own.
func card(name string, total int64) machine.Device {
	d := sharedGPU(name, 400*perGiB, 9000*perGiB)
	d.SharesHost, d.HostPointer, d.Wires = machine.No(probed), machine.Unknown[bool]("not advertised"), machine.No(probed)
	d.Total, d.Free = machine.Known(total, probed), machine.Known(total-gib(0.5), probed)
	return d
}

// phone compresses. Its exempt store publishes no total, and almost nothing can be locked in place.
func phone(available int64) machine.Profile {
	m := desktop(gib(12), available)
	m.Name = "phone"
	m.Memory.Pressure = machine.Known(machine.Compresses, probed)
	m.Memory.ExemptTotal = machine.Unknown[int64]("publishes no total")
	m.Memory.LockInPlace = machine.Known(int64(64<<10), probed)
	m.Cores = machine.Cores{Physical: machine.Known(8, probed), Classes: []machine.CoreClass{{Count: 2, Frequency: 4_600_000_000}, {Count: 6, Frequency: 3_600_000_000}},
		ReadRate: machine.Known(30*perGiB, probed), WideRate: machine.Known(37*perGiB, probed)}
	m.Storage = drive(1400*perMiB, 60*perMiB)
	return m
}

// npu does not draw on the host as far as it can be told, and reports no memory of its own.
func npu() machine.Device {
	d := sharedGPU("NPU0", 28*perGiB, 1500*perGiB)
	d.Description = "a neural device"
	d.SharesHost, d.Total, d.Free = machine.No(probed), machine.Unknown[int64]("reports none"), machine.Unknown[int64]("reports none")
	d.Wires, d.HostPointer, d.NeedsRepack = machine.No(probed), machine.Unknown[bool]("not advertised"), machine.Yes(probed)
	return d
}

// unprobed knows what is free of charge and nothing else.
func unprobed(m machine.Profile) machine.Profile {
	const why = "not probed: only free facts were asked for"
	m.Storage = machine.Storage{From: why, Refault: machine.Unknown[float64](why)}
	m.Cores.ReadRate, m.Cores.WideRate = machine.Unknown[float64](why), machine.Unknown[float64](why)
	for i := range m.Devices {
		d := &m.Devices[i]
		d.Usable, d.RunsExperts = machine.Unknown[bool](why), machine.Unknown[bool](why)
		d.ReadRate, d.ReadError, d.WideRate, d.WideError, d.Crossing = machine.Unknown[float64](why), machine.Unknown[float64](why),
			machine.Unknown[float64](why), machine.Unknown[float64](why), machine.Unknown[float64](why)
	}
	return m
}

// with changes a machine.
func with(m machine.Profile, change func(*machine.Profile)) machine.Profile {
	m.Devices = append([]machine.Device(nil), m.Devices...)
	m.Storage.Curve = append([]machine.Rate(nil), m.Storage.Curve...)
	change(&m)
	return m
}

// projection is what a session at a context of 16384 was projected to reserve on the laptop: 8 GB at the full width, on the
// host and the device together.
func projection(device string) Placement {
	return Placement{Projection: Projection{Width: 16384, At: Reserve{Context: inMiB(340), Compute: inMiB(3900)}, Half: Reserve{Context: inMiB(340), Compute: inMiB(1960)},
		Devices: map[string]DeviceWidth{device: {At: inMiB(3888), Half: inMiB(1944)}}}}
}

// placed is a model all of which goes to a card: what the host holds of it then, and what it holds where the card is not used.
func placed(device string) Placement {
	card := map[string]DeviceWidth{device: {At: inMiB(500), Half: inMiB(250)}}
	return Placement{Layers: 41, Devices: []DeviceShare{{device, 41, gib(20)}},
		Projection: Projection{Width: 4096, At: Reserve{Context: inMiB(80), Compute: inMiB(600)}, Half: Reserve{Context: inMiB(80), Compute: inMiB(300)}, Devices: card},
		Placed:     Projection{Width: 4096, At: Reserve{Compute: inMiB(90)}, Half: Reserve{Compute: inMiB(45)}, Devices: card}}
}

// find is the decision about a knob, or none.
func (p Plan) find(knob string) (Decision, bool) {
	for _, d := range p.Decisions {
		if d.Knob == knob {
			return d, true
		}
	}
	return Decision{}, false
}

// able is a session that can do everything a plan may ask of one.
var able = Abilities{LocksCache: true, PrefillDevice: true, PlacesLayers: true}
