package synth

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// small is the shape of the test models: about 20 MB.
var small = Spec{
	Arch: Qwen3MoE, Layers: 6, Experts: 32, Used: 4, Embed: 256, FF: 256, Heads: 4, KVHeads: 2, HeadDim: 64,
	Mix: []Mix{{Q4_0, Q4_0}}, Dense: Q8_0, Locality: Published, Seed: 1,
}

// with is a copy of a spec after some changes.
func (s Spec) with(change func(*Spec)) Spec {
	change(&s)
	return s
}

// presets are the models that tests and benchmarks name.
var presets = map[string]Spec{
	"qwen3moe-20m": small,
	// As published files mix them: types, and so slice sizes, differ from layer to layer and between up and down.
	"qwen3moe-kquant-20m": small.with(func(s *Spec) { s.Mix = []Mix{{Q4_K, Q6_K}, {Q4_K, Q4_K}, {Q5_K, Q6_K}} }),
	"qwen3moe-iq-20m":     small.with(func(s *Spec) { s.Mix = []Mix{{IQ4_XS, IQ4_NL}, {IQ4_NL, Q8_0}} }),
	// Slices whose size is a multiple neither of a page nor of a disk sector.
	"qwen3moe-odd-20m":       small.with(func(s *Spec) { s.Embed, s.FF = 288, 224 }),
	"qwen3moe-shards-20m":    small.with(func(s *Spec) { s.Shards = 3 }),
	"qwen3moe-headshard-20m": small.with(func(s *Spec) { s.Shards, s.HeadShard = 4, true }),
	"gpt-oss-20m": small.with(func(s *Spec) {
		s.Arch, s.Embed, s.FF, s.Mix = GPTOSS, 288, 288, []Mix{{MXFP4, MXFP4}}
	}),
	"deepseek2-20m": small.with(func(s *Spec) {
		s.Arch, s.Layers, s.DenseLead, s.Shared, s.Mix = DeepSeek2, 7, 1, 1, []Mix{{Q4_K, Q6_K}, {Q4_K, Q4_K}}
	}),
	"deepseek2-fused-20m": small.with(func(s *Spec) {
		s.Arch, s.Layers, s.DenseLead, s.Shared, s.FusedGateUp = DeepSeek2, 7, 1, 1, true
	}),
	"glm4moe-20m": small.with(func(s *Spec) {
		s.Arch, s.Layers, s.DenseLead, s.Shared, s.MTP = GLM4MoE, 7, 2, 1, true
	}),
	// The shape whose cache curve is calibrated, small and large.
	"calibrated-50m": Sized(50e6),
	"bench-8g":       Sized(8.4e9),
}

// Presets are the names that [Named] knows, sorted.
func Presets() []string { return slices.Sorted(maps.Keys(presets)) }

// Named is a preset.
func Named(name string) (Spec, error) {
	s, ok := presets[name]
	if !ok {
		return Spec{}, fmt.Errorf("no model is called %q; there are %s", name, strings.Join(Presets(), ", "))
	}
	s.Name = name
	return s, nil
}

// Sized is a model of about the given size, with 8 of 128 experts used as in many published models and their locality.
// Its slices are as large as leaves it a fair number of layers: 864 KiB from 4.3 GB up, 288 KiB from 1 GB up.
// Below 45 MB the stream is too narrow for the walk through the words: the likeliest text may repeat itself.
func Sized(bytes int64) Spec {
	var s Spec
	for _, shape := range []struct{ layers, embed, ff, heads, keys, head int }{
		{24, 4096, 1536, 32, 4, 128},
		{12, 2048, 768, 16, 4, 128},
		{8, 1024, 512, 16, 4, 64},
		{6, 512, 256, 8, 2, 64},
		{6, 256, 128, 4, 2, 64},
		{1, 128, 64, 4, 2, 32},
	} {
		s = Spec{
			Arch: Qwen3MoE, Experts: 128, Used: 8, Embed: shape.embed, FF: shape.ff,
			Heads: shape.heads, KVHeads: shape.keys, HeadDim: shape.head,
			Mix: []Mix{{Q4_0, Q4_0}}, Dense: Q8_0, Locality: Published, Seed: 1,
		}
		size := func(layers int) int64 {
			s.Layers = layers
			return total(cut("", s))
		}
		one, two := size(1), size(2)
		s.Layers = int(min(max(1, 1+(bytes-one)/(two-one)), 500))
		if s.Layers >= shape.layers {
			break
		}
	}
	return s
}
