package plan

import (
	"fmt"

	"github.com/bmoe/bmoe/core/params"
)

// memory finds what the run may hold.
func (p *planner) memory() {
	limit, holdable := p.set.Int("memory"), p.machine.Holdable
	from, source := p.machine.HoldableFrom, Measured
	switch {
	case limit != params.Auto && (holdable == 0 || limit <= holdable):
		holdable, from, source = limit, "set by hand", Operator
	case limit != params.Auto:
		from += fmt.Sprintf(", which is less than the %s set by hand", bytes(limit))
	case holdable == 0:
		p.note("memory", "unknown", Unprobed,
			"nobody knows what this process may hold",
			"what this process may hold could not be read; "+params.Flag("memory")+" says it")
		return
	}
	margin := max(int64(marginShare*float64(holdable)), marginLeast)
	p.usable = max(holdable-margin, 0)
	p.note("memory", bytes(holdable), source,
		fmt.Sprintf("%s (%s), of which %s stay free", bytes(holdable), from, bytes(margin)),
		fmt.Sprintf("this process may hold %s (%s); less a margin of %s (%.0f%%, at least %s), %s are planned with",
			bytes(holdable), from, bytes(margin), 100*marginShare, bytes(marginLeast), bytes(p.usable)))
}

// context fixes the length of the context and finds what it takes.
func (p *planner) context() {
	p.tokens = Context(p.set.Int("ctx-size"), p.model.Context)
	row, known := p.kvRow()
	p.kv, p.kvKnown = row*p.tokens, known
	size := "an unknown amount of memory"
	if known {
		size = bytes(p.kv)
	}
	p.choose("ctx-size", fmt.Sprint(p.tokens), Policy,
		fmt.Sprintf("%d tokens of context take %s", p.tokens, size),
		fmt.Sprintf("the smaller of %d and the %d tokens the model was made for; %s sets another. Its keys and values take %s",
			usualContext, p.model.Context, params.Flag("ctx-size"), size))
}

// widest narrows the widest graph until its buffers are a small share of what may be held.
func (p *planner) widest() {
	p.width = p.tokens
	for p.usable > 0 && p.width > narrowest && p.compute() > int64(computeShare*float64(p.usable)) {
		p.width = max(p.width/2, narrowest)
	}
	p.choose("ubatch", fmt.Sprint(p.width), Policy,
		fmt.Sprintf("%d tokens of a prompt at once, in about %s", p.width, bytes(p.compute())),
		fmt.Sprintf("halved from the context, not below %d, until the buffers of the widest graph are at most %.0f%% of %s; at %d tokens they are estimated at %s",
			narrowest, 100*computeShare, bytes(p.usable), p.width, bytes(p.compute())))
	p.width = min(p.set.Int("ubatch"), p.tokens)
}

// Context is the length of the context, in tokens, that a value of the parameter stands for with a model that was made for
// so many.
func Context(value int64, model int) int64 {
	switch value {
	case params.Auto:
		return min(usualContext, int64(model))
	case 0:
		return int64(model)
	}
	return value
}

// fixed is what the run holds whatever is chosen about weights.
func (p *planner) fixed() int64 { return p.kv + p.compute() + program }

// compute estimates the buffers of a graph as wide as p.width. A token of width takes a few dozen rows of the model's
// width, the routed experts' rows, and its row of the attention mask in two types.
func (p *planner) compute() int64 {
	embedding, routed := int64(p.model.Embedding), int64(p.model.ExpertUsed)
	var expert int64 // rows of one expert's hidden layer
	for t := range p.model.Experts() {
		expert = max(expert, t.Dims[1])
	}
	perToken := 4*(24*embedding+routed*(2*embedding+3*expert)) + 6*p.tokens
	return p.width*perToken + 4*int64(p.model.Vocab)
}

// kvRow estimates the bytes that one token of context takes in the KV cache, from the shapes of the attention weights. It
// is not known where the model has attention of a kind that is not met here.
func (p *planner) kvRow() (int64, bool) {
	keys, values := cellBits[p.set.String("cache-type-k")], cellBits[p.set.String("cache-type-v")]
	var bits int64
	for layer := range p.model.Layers {
		dim := func(name string, axis int) int64 {
			t, ok := p.model.Tensor(fmt.Sprintf("blk.%d.%s.weight", layer, name))
			if !ok {
				return 0
			}
			return t.Dims[axis]
		}
		latent := dim("attn_kv_a_mqa", 1)
		fused := dim("attn_qkv", 1)
		switch k := dim("attn_k", 1); {
		case k > 0 && dim("attn_v", 1) > 0:
			bits += k*keys + dim("attn_v", 1)*values
		case k > 0: // the values are the keys
			bits += k * (keys + values)
		case latent > 0: // at most this: some releases keep no values of their own
			bits += latent * (keys + values)
		case fused > dim("attn_output", 0):
			bits += (fused - dim("attn_output", 0)) * max(keys, values)
		}
	}
	return (bits + 7) / 8, bits > 0
}

// cellBits is what an element of a KV cache takes, in bits rounded up. Quantized types come in blocks of 32 with one or
// two 16-bit scales.
var cellBits = map[string]int64{
	"f32": 32, "f16": 16, "bf16": 16, "q8_0": 9, "q5_1": 6, "q5_0": 6, "q4_1": 5, "q4_0": 5, "iq4_nl": 5,
}
