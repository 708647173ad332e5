package synth

import (
	"fmt"
	"strings"
)

// Arch is an architecture by the name that model files give it.
type Arch string

const (
	// Qwen3MoE routes in every layer and has nothing but experts beside its attention.
	Qwen3MoE Arch = "qwen3moe"
	// GPTOSS has biases on its experts, attention sinks and sliding windows in every other layer.
	GPTOSS Arch = "gpt-oss"
	// DeepSeek2 has compressed attention, leading dense layers and shared experts. It alone of these takes
	// [Spec.FusedGateUp].
	DeepSeek2 Arch = "deepseek2"
	// GLM4MoE has leading dense layers, shared experts and a block for multi-token prediction that is not used for
	// generating ([Spec.MTP]).
	GLM4MoE Arch = "glm4moe"
)

// Mix is the types of one layer's expert tensors.
type Mix struct {
	GateUp Type
	Down   Type
}

// Spec describes a model. The zero value of an optional field is the usual thing; see [Named] for ready ones.
type Spec struct {
	Arch Arch
	Name string // general.name; "": made from the architecture

	Layers  int // with the leading dense ones, without the MTP block
	Experts int // per layer
	Used    int // experts routed to per token and layer: the routing width
	Embed   int // width of the residual stream
	FF      int // width of one expert; a leading dense layer is four times as wide

	Heads     int // attention heads
	KVHeads   int // heads of keys and values; DeepSeek2 has its own scheme
	HeadDim   int // elements of a head
	Context   int // tokens the model claims to be trained for; 0: 32768
	DenseLead int // leading layers without experts (DeepSeek2, GLM4MoE)
	Shared    int // experts that every token goes through (DeepSeek2, GLM4MoE need at least one)

	FusedGateUp bool // gate and up in one tensor (DeepSeek2)
	MTP         bool // a block for multi-token prediction behind the last layer (GLM4MoE)

	Mix   []Mix // types of the expert tensors: of layer i, Mix[i % len(Mix)]
	Dense Type  // type of the other matrices; embedding, output, router and norms have fixed types

	// Locality is how much more an expert's popularity decides a routing than the token does: 0 routes all experts alike,
	// Published gives the cache curve of real models.
	Locality float64

	Shards    int  // files the model is cut into; 0 or 1: one file
	HeadShard bool // of several shards, the first has the metadata and no tensor
	Seed      uint64
}

// anchor is how many of the first elements of the residual stream are constant (see the package comment).
const anchor = 32

// validate says what about a spec can't be written or would not load.
func (s Spec) validate() error {
	var wrong []string
	reject := func(bad bool, format string, args ...any) {
		if bad {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	_, known := architectures[s.Arch]
	reject(!known, "unknown architecture %q", s.Arch)
	reject(s.Layers < 1 || s.Layers > 500, "%d layers: want 1 to 500", s.Layers)
	reject(s.Experts < 2 || s.Experts > 512, "%d experts: want 2 to 512", s.Experts)
	reject(s.Used < 1 || s.Used > s.Experts, "%d experts used of %d", s.Used, s.Experts)
	reject(s.Embed < 2*anchor || s.Embed%32 != 0, "embedding of %d elements: want a multiple of 32, at least %d", s.Embed, 2*anchor)
	reject(s.FF < 32 || s.FF%32 != 0, "experts %d wide: want a multiple of 32", s.FF)
	reject(s.HeadDim < 32 || s.HeadDim%32 != 0, "heads of %d elements: want a multiple of 32", s.HeadDim)
	reject(s.Heads < 1, "%d heads", s.Heads)
	reject(s.KVHeads < 1 || s.Heads%max(s.KVHeads, 1) != 0, "%d heads can't share %d heads of keys and values", s.Heads, s.KVHeads)
	reject(s.Shards < 0 || s.Shards > 1000, "%d shards: want at most 1000", s.Shards)
	reject(s.HeadShard && s.Shards < 2, "a first shard without tensors wants a second one")
	reject(s.Locality < 0, "locality %g is negative", s.Locality)

	leads := s.Arch == DeepSeek2 || s.Arch == GLM4MoE
	reject(s.DenseLead < 0 || s.DenseLead >= max(s.Layers, 1), "%d leading dense layers of %d", s.DenseLead, s.Layers)
	reject(s.DenseLead > 0 && !leads, "%s has no leading dense layers", s.Arch)
	reject(s.Shared > 0 && !leads, "%s has no shared experts", s.Arch)
	reject(s.Shared < 1 && leads, "%s wants a shared expert", s.Arch)
	reject(s.FusedGateUp && s.Arch != DeepSeek2, "%s has no fused gate and up", s.Arch)
	reject(s.MTP && s.Arch != GLM4MoE, "%s is not written with an MTP block", s.Arch)

	reject(len(s.Mix) == 0, "no types for the experts")
	for _, m := range s.Mix {
		for _, t := range []struct {
			kind Type
			row  int
		}{{m.GateUp, s.Embed}, {m.Down, s.FF}} {
			f, ok := formats[t.kind]
			switch {
			case !ok || f.scale == nil:
				reject(true, "experts can't be %s", t.kind)
			case int64(t.row)%f.elements != 0:
				reject(true, "rows of %d elements can't be %s: its blocks have %d", t.row, t.kind, f.elements)
			}
		}
	}
	f, ok := formats[s.Dense]
	reject(!ok || f.scale == nil || f.elements > 32, "the dense set can't be %s: want q8_0, q4_0 or iq4_nl", s.Dense)

	if len(wrong) > 0 {
		return fmt.Errorf("model spec: %s", strings.Join(wrong, "; "))
	}
	return nil
}
