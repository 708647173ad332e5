//go:build unix

package safe

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/gguf"
	"github.com/bmoe/bmoe/core/gguf/gguftest"
)

// made is a model that the test makes up: a header of a few kilobytes before data that is a hole in the file. Its weights are
// all zero, which is good enough for what is about loading.
type made struct {
	arch      string
	layers    int64
	embed, ff int64
	experts   int64 // 0: a dense model
	context   uint32
	change    func(name string, dims []int64) []int64 // of a tensor; nil leaves it out
}

// write makes the file. It takes no room on the disk, however large it says it is.
func (m made) write(t testing.TB, path string) string {
	t.Helper()
	texts, kinds := []string{"<unk>", "<s>", "</s>"}, []int32{2, 3, 3}
	for b := range 256 {
		texts, kinds = append(texts, fmt.Sprintf("<0x%02X>", b)), append(kinds, 6)
	}
	const heads = 4
	meta := []gguftest.Pair{gguftest.KV("general.architecture", m.arch)}
	for key, n := range map[string]int64{
		"block_count": m.layers, "context_length": int64(max(m.context, 512)), "embedding_length": m.embed, "feed_forward_length": m.ff,
		"attention.head_count": heads, "attention.head_count_kv": heads, "expert_count": m.experts, "expert_used_count": min(m.experts, 2),
		"expert_feed_forward_length": m.ff, "vocab_size": int64(len(texts)),
	} {
		if n > 0 {
			meta = append(meta, gguftest.KV(m.arch+"."+key, uint32(n)))
		}
	}
	meta = append(meta, gguftest.KV(m.arch+".attention.layer_norm_rms_epsilon", float32(1e-6)),
		gguftest.KV("tokenizer.ggml.model", "llama"), gguftest.KV("tokenizer.ggml.tokens", texts),
		gguftest.KV("tokenizer.ggml.scores", make([]float32, len(texts))), gguftest.KV("tokenizer.ggml.token_type", kinds),
		gguftest.KV("tokenizer.ggml.add_space_prefix", false), gguftest.KV("tokenizer.ggml.add_bos_token", false))

	var tensors []gguftest.Tensor
	add := func(kind gguf.Type, name string, dims ...int64) {
		if m.change != nil {
			if dims = m.change(name, dims); dims == nil {
				return
			}
		}
		tensors = append(tensors, gguftest.NewTensor(name, kind, dims...))
	}
	add(gguf.F16, "token_embd.weight", m.embed, int64(len(texts)))
	for l := range m.layers {
		p := "blk." + strconv.Itoa(int(l)) + "."
		add(gguf.F32, p+"attn_norm.weight", m.embed)
		for _, name := range []string{"q", "k", "v", "output"} {
			add(gguf.F16, p+"attn_"+name+".weight", m.embed, m.embed)
		}
		add(gguf.F32, p+"ffn_norm.weight", m.embed)
		if m.experts == 0 {
			add(gguf.F16, p+"ffn_gate.weight", m.embed, m.ff)
			add(gguf.F16, p+"ffn_up.weight", m.embed, m.ff)
			add(gguf.F16, p+"ffn_down.weight", m.ff, m.embed)
			continue
		}
		add(gguf.F32, p+"attn_q_norm.weight", m.embed/heads)
		add(gguf.F32, p+"attn_k_norm.weight", m.embed/heads)
		add(gguf.F32, p+"ffn_gate_inp.weight", m.embed, m.experts)
		add(gguf.F16, p+"ffn_gate_exps.weight", m.embed, m.ff, m.experts)
		add(gguf.F16, p+"ffn_up_exps.weight", m.embed, m.ff, m.experts)
		add(gguf.F16, p+"ffn_down_exps.weight", m.ff, m.embed, m.experts)
	}
	add(gguf.F32, "output_norm.weight", m.embed)
	add(gguf.F16, "output.weight", m.embed, int64(len(texts)))

	head := gguftest.Header(meta, tensors)
	size := int64(len(head))
	for _, tensor := range tensors {
		size += (tensor.Size() + 31) &^ 31
	}
	require.NoError(t, os.WriteFile(path, head, 0o644))
	require.NoError(t, os.Truncate(path, size))
	return path
}

// The made models.
var (
	small      = made{arch: "qwen3moe", layers: 2, embed: 64, ff: 64, experts: 4}
	smallDense = made{arch: "llama", layers: 2, embed: 64, ff: 64}
)

// The makeup is right: unchanged, these models run.
func TestMadeModelsRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run(t, "-m", small.write(t, filepath.Join(dir, "moe.gguf")), "-p", "a", "-n", "2", "-c", "64", "--ignore-eos").orderly(t, done)
	run(t, "-m", filepath.Join(dir, "moe.gguf"), "-p", "a", "-n", "2", "-c", "64", "--ignore-eos", "--moe-stream").orderly(t, done)
	run(t, "-m", smallDense.write(t, filepath.Join(dir, "dense.gguf")), "-p", "a", "-n", "2", "-c", "64", "--ignore-eos").orderly(t, done)
}
