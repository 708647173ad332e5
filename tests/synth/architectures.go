package synth

import (
	"fmt"
	"math"
)

// architectures says how the layers of each one are written.
var architectures = map[Arch]func(*builder){
	Qwen3MoE:  (*builder).qwen3moe,
	GPTOSS:    (*builder).gptoss,
	DeepSeek2: (*builder).deepseek2,
	GLM4MoE:   (*builder).glm4moe,
}

// sharpness is the standard deviation of attention scores: high enough that a token looks at few others, so that what it
// sees differs from position to position.
const sharpness = 3

// builder collects the metadata and tensors of a spec.
type builder struct {
	Spec
	meta    []pair
	tensors []tensor
}

func build(s Spec) *builder {
	b := &builder{Spec: s}
	if b.Context == 0 {
		b.Context = 32768
	}
	if b.Name == "" {
		b.Name = "synthetic " + string(b.Arch)
	}
	blocks := b.Layers
	if b.MTP {
		blocks++
	}
	b.set("general.architecture", string(b.Arch))
	b.set("general.type", "model")
	b.set("general.name", b.Name)
	b.key("block_count", blocks)
	b.key("context_length", b.Context)
	b.key("embedding_length", b.Embed)
	b.key("feed_forward_length", 4*b.FF)
	b.key("attention.head_count", b.Heads)
	b.key("expert_count", b.Experts)
	b.key("expert_used_count", b.Used)
	b.key("expert_feed_forward_length", b.FF)
	b.key("vocab_size", vocabulary)
	b.set(string(b.Arch)+".attention.layer_norm_rms_epsilon", float32(1e-6))
	texts, kinds := tokens()
	b.set("tokenizer.ggml.model", "llama")
	b.set("tokenizer.ggml.tokens", texts)
	b.set("tokenizer.ggml.scores", make([]float32, vocabulary))
	b.set("tokenizer.ggml.token_type", kinds)
	b.set("tokenizer.ggml.bos_token_id", uint32(tokenBegin))
	b.set("tokenizer.ggml.eos_token_id", uint32(tokenEnd))
	b.set("tokenizer.ggml.unknown_token_id", uint32(tokenUnknown))
	b.set("tokenizer.ggml.add_space_prefix", false)

	head := newHead(s)
	b.given("token_embd.weight", Q8_0, head.embedding, b.Embed, vocabulary)
	architectures[b.Arch](b)
	b.norm("output_norm.weight", b.Embed)
	b.given("output.weight", Q8_0, head.output, b.Embed, vocabulary)
	return b
}

func (b *builder) set(key string, value any) { b.meta = append(b.meta, pair{key, value}) }

// key sets a number of the architecture's own metadata.
func (b *builder) key(name string, n int) { b.set(string(b.Arch)+"."+name, uint32(n)) }

func dims(ns []int) []int64 {
	d := make([]int64, len(ns))
	for i, n := range ns {
		d[i] = int64(n)
	}
	return d
}

// random adds a tensor of random weights; a quiet one leaves the anchor of the stream it writes to alone.
func (b *builder) random(name string, kind Type, deviation float64, quiet int64, ns ...int) {
	b.tensors = append(b.tensors, tensor{name: name, kind: kind, dims: dims(ns), deviation: deviation, quiet: quiet})
}

// given adds a tensor whose rows are computed.
func (b *builder) given(name string, kind Type, row func(int64, []float32), ns ...int) {
	b.tensors = append(b.tensors, tensor{name: name, kind: kind, dims: dims(ns), row: row})
}

// same adds a vector whose elements are all v.
func (b *builder) same(name string, v float32, n int) {
	b.given(name, F32, func(_ int64, values []float32) {
		for i := range values {
			values[i] = v
		}
	}, n)
}

func (b *builder) norm(name string, n int) { b.same(name, 1, n) }

// bias adds small random values, zero in the first elements of each row.
func (b *builder) bias(name string, deviation float64, quiet int, ns ...int) {
	b.given(name, F32, func(i int64, values []float32) {
		r := normals(b.Seed, fmt.Sprint(name, i))
		for j := range values {
			values[j] = 0
			if j >= quiet {
				values[j] = float32(deviation * r.NormFloat64())
			}
		}
	}, ns...)
}

// dense adds a matrix of the dense set that keeps the scale of what goes through it, times gain.
func (b *builder) dense(name string, gain float64, in int, rest ...int) {
	b.random(name, b.Dense, gain/math.Sqrt(float64(in)), 0, append([]int{in}, rest...)...)
}

// writer adds a matrix of the dense set whose output is added to the stream.
func (b *builder) writer(name string, gain float64, in int) {
	b.random(name, b.Dense, gain/math.Sqrt(float64(in)), anchor, in, b.Embed)
}

// share is the gain that makes all the layers together add about half the variance that the embedding has, given that
// one layer's unscaled contribution has the standard deviation d.
func (b *builder) share(d float64) float64 { return math.Sqrt(0.5/float64(b.Layers)) / d }

// attention adds grouped-query attention; query is the gain of the query matrix.
func (b *builder) attention(p string, query float64) {
	b.norm(p+"attn_norm.weight", b.Embed)
	b.dense(p+"attn_q.weight", query, b.Embed, b.Heads*b.HeadDim)
	b.dense(p+"attn_k.weight", 1, b.Embed, b.KVHeads*b.HeadDim)
	b.dense(p+"attn_v.weight", 1, b.Embed, b.KVHeads*b.HeadDim)
	b.writer(p+"attn_output.weight", b.share(0.7), b.Heads*b.HeadDim)
}

// attentionKeys describes grouped-query attention.
func (b *builder) attentionKeys(ropeBase float32) {
	b.key("attention.head_count_kv", b.KVHeads)
	b.key("attention.key_length", b.HeadDim)
	b.key("attention.value_length", b.HeadDim)
	b.set(string(b.Arch)+".rope.freq_base", ropeBase)
}

// moe adds the router and the experts of a layer.
func (b *builder) moe(p string, layer int) {
	b.given(p+"ffn_gate_inp.weight", F32, newRouter(b.Spec, layer).row, b.Embed, b.Experts)
	mix := b.Mix[layer%len(b.Mix)]
	in, down := 1/math.Sqrt(float64(b.Embed)), b.share(0.27)/math.Sqrt(float64(b.FF))
	if b.FusedGateUp {
		b.random(p+"ffn_gate_up_exps.weight", mix.GateUp, in, 0, b.Embed, 2*b.FF, b.Experts)
	} else {
		b.random(p+"ffn_gate_exps.weight", mix.GateUp, in, 0, b.Embed, b.FF, b.Experts)
		b.random(p+"ffn_up_exps.weight", mix.GateUp, in, 0, b.Embed, b.FF, b.Experts)
	}
	b.random(p+"ffn_down_exps.weight", mix.Down, down, anchor, b.FF, b.Embed, b.Experts)
}

// feedForward adds a gated network of the dense set; suffix is "" or "_shexp".
func (b *builder) feedForward(p, suffix string, width int) {
	b.dense(p+"ffn_gate"+suffix+".weight", 1, b.Embed, width)
	b.dense(p+"ffn_up"+suffix+".weight", 1, b.Embed, width)
	b.writer(p+"ffn_down"+suffix+".weight", b.share(0.6), width)
}

// ledMoE adds a layer of an architecture with leading dense layers and shared experts.
func (b *builder) ledMoE(p string, layer int) {
	if layer < b.DenseLead {
		b.feedForward(p, "", 4*b.FF)
		return
	}
	b.moe(p, layer)
	b.bias(p+"exp_probs_b.bias", 0.01, 0, b.Experts)
	b.feedForward(p, "_shexp", b.Shared*b.FF)
}

// ledKeys describes leading dense layers, shared experts and routing by sigmoid, whose weights are made to add up to 1.
func (b *builder) ledKeys() {
	const sigmoid = 2 // enum llama_expert_gating_func_type
	b.key("leading_dense_block_count", b.DenseLead)
	b.key("expert_shared_count", b.Shared)
	b.key("expert_gating_func", sigmoid)
	b.set(string(b.Arch)+".expert_weights_norm", true)
	b.set(string(b.Arch)+".expert_weights_scale", float32(1))
}

func (b *builder) qwen3moe() {
	b.attentionKeys(1e6)
	for l := range b.Layers {
		p := fmt.Sprintf("blk.%d.", l)
		b.attention(p, 1)
		b.same(p+"attn_q_norm.weight", sharpness, b.HeadDim)
		b.norm(p+"attn_k_norm.weight", b.HeadDim)
		b.norm(p+"ffn_norm.weight", b.Embed)
		b.moe(p, l)
	}
}

func (b *builder) gptoss() {
	b.attentionKeys(150000)
	b.key("attention.sliding_window", 128)
	for l := range b.Layers {
		p := fmt.Sprintf("blk.%d.", l)
		b.attention(p, sharpness)
		b.bias(p+"attn_q.bias", 0.1, 0, b.Heads*b.HeadDim)
		b.bias(p+"attn_k.bias", 0.1, 0, b.KVHeads*b.HeadDim)
		b.bias(p+"attn_v.bias", 0.1, 0, b.KVHeads*b.HeadDim)
		b.bias(p+"attn_output.bias", 0.01, anchor, b.Embed)
		b.bias(p+"attn_sinks.weight", 1, 0, b.Heads)
		b.norm(p+"post_attention_norm.weight", b.Embed)
		b.moe(p, l)
		b.bias(p+"ffn_gate_inp.bias", 0.01, 0, b.Experts)
		b.bias(p+"ffn_gate_exps.bias", 0.1, 0, b.FF, b.Experts)
		b.bias(p+"ffn_up_exps.bias", 0.1, 0, b.FF, b.Experts)
		b.bias(p+"ffn_down_exps.bias", 0.01, anchor, b.Embed, b.Experts)
	}
}

// deepseek2 compresses queries to half the stream's width and keys and values to 4 heads' width; half as many elements
// as a head has are rotated, beside it.
func (b *builder) deepseek2() {
	rope, queries, values := b.HeadDim/2/32*32, max(b.Embed/2/32*32, 32), 4*b.HeadDim
	if rope == 0 {
		rope = 32
	}
	head := b.HeadDim + rope
	b.ledKeys()
	b.key("attention.head_count_kv", 1)
	b.key("attention.q_lora_rank", queries)
	b.key("attention.kv_lora_rank", values)
	b.key("attention.key_length", values+rope)
	b.key("attention.value_length", values)
	b.key("attention.key_length_mla", head)
	b.key("attention.value_length_mla", b.HeadDim)
	b.key("rope.dimension_count", rope)
	for l := range b.Layers {
		p := fmt.Sprintf("blk.%d.", l)
		b.norm(p+"attn_norm.weight", b.Embed)
		b.norm(p+"attn_q_a_norm.weight", queries)
		b.norm(p+"attn_kv_a_norm.weight", values)
		b.dense(p+"attn_q_a.weight", 1, b.Embed, queries)
		b.dense(p+"attn_q_b.weight", sharpness, queries, b.Heads*head)
		b.dense(p+"attn_kv_a_mqa.weight", 1, b.Embed, values+rope)
		// k_b is applied to the query, so the scale that it keeps is that of its other side.
		b.random(p+"attn_k_b.weight", b.Dense, 1/math.Sqrt(float64(values)), 0, b.HeadDim, values, b.Heads)
		b.dense(p+"attn_v_b.weight", 1, values, b.HeadDim, b.Heads)
		b.writer(p+"attn_output.weight", b.share(0.7), b.Heads*b.HeadDim)
		b.norm(p+"ffn_norm.weight", b.Embed)
		b.ledMoE(p, l)
	}
}

func (b *builder) glm4moe() {
	b.attentionKeys(1e6)
	b.ledKeys()
	layer := func(l int) string {
		p := fmt.Sprintf("blk.%d.", l)
		b.attention(p, sharpness)
		b.norm(p+"post_attention_norm.weight", b.Embed)
		b.ledMoE(p, l)
		return p
	}
	for l := range b.Layers {
		layer(l)
	}
	if b.MTP {
		b.key("nextn_predict_layers", 1)
		p := layer(b.Layers)
		b.dense(p+"nextn.eh_proj.weight", 1, 2*b.Embed, b.Embed)
		b.norm(p+"nextn.enorm.weight", b.Embed)
		b.norm(p+"nextn.hnorm.weight", b.Embed)
		b.norm(p+"nextn.shared_head_norm.weight", b.Embed)
	}
}
