package model_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/gguf"
	"github.com/bmoe/bmoe/core/gguf/gguftest"
	"github.com/bmoe/bmoe/core/model"
)

// sample describes a model file. Its zero values are those of a small model with everything in one layer shape.
type sample struct {
	architecture string
	figures      map[string]any // metadata under the architecture's prefix; replaces the defaults
	general      []gguftest.Pair
	layers       []func(layer int) []gguftest.Tensor
	outer        []gguftest.Tensor // tensors of no layer
}

const (
	embedding = 256
	width     = 512 // of an expert
	experts   = 8
	vocab     = 100
)

var t = gguftest.NewTensor

// attention is what every layer has beside its feed-forward part.
func attention(layer int) []gguftest.Tensor {
	return []gguftest.Tensor{
		t(fmt.Sprintf("blk.%d.attn_norm.weight", layer), gguf.F32, embedding),
		t(fmt.Sprintf("blk.%d.attn_q.weight", layer), gguf.Q8_0, embedding, embedding),
	}
}

// split is a layer of experts with gate and up apart, and with down of a type of its own.
func split(down gguf.Type) func(int) []gguftest.Tensor {
	return func(layer int) []gguftest.Tensor {
		return append(attention(layer),
			t(fmt.Sprintf("blk.%d.ffn_gate_inp.weight", layer), gguf.F32, embedding, experts),
			t(fmt.Sprintf("blk.%d.ffn_gate_exps.weight", layer), gguf.Q4_K, embedding, width, experts),
			t(fmt.Sprintf("blk.%d.ffn_up_exps.weight", layer), gguf.Q4_K, embedding, width, experts),
			t(fmt.Sprintf("blk.%d.ffn_up_exps.bias", layer), gguf.F32, width, experts),
			t(fmt.Sprintf("blk.%d.ffn_down_exps.weight", layer), down, width, embedding, experts),
			t(fmt.Sprintf("blk.%d.ffn_up_shexp.weight", layer), gguf.Q4_K, embedding, width),
		)
	}
}

// fused is a layer of experts with gate and up in one tensor.
func fused(layer int) []gguftest.Tensor {
	return append(attention(layer),
		t(fmt.Sprintf("blk.%d.ffn_gate_up_exps.weight", layer), gguf.Q4_K, embedding, 2*width, experts),
		t(fmt.Sprintf("blk.%d.ffn_down_exps.weight", layer), gguf.Q4_K, width, embedding, experts),
	)
}

// ungated is a layer of experts without a gate.
func ungated(layer int) []gguftest.Tensor {
	return append(attention(layer),
		t(fmt.Sprintf("blk.%d.ffn_up_exps.weight", layer), gguf.Q4_K, embedding, width, experts),
		t(fmt.Sprintf("blk.%d.ffn_down_exps.weight", layer), gguf.Q4_K, width, embedding, experts),
	)
}

// dense is a layer without experts.
func dense(layer int) []gguftest.Tensor {
	return append(attention(layer),
		t(fmt.Sprintf("blk.%d.ffn_up.weight", layer), gguf.Q4_K, embedding, 4*width),
		t(fmt.Sprintf("blk.%d.ffn_down.weight", layer), gguf.Q4_K, 4*width, embedding),
	)
}

// prediction is a block for multi-token prediction: a layer of experts with what marks it.
func prediction(layer int) []gguftest.Tensor {
	return append(split(gguf.Q4_K)(layer), t(fmt.Sprintf("blk.%d.nextn.eh_proj.weight", layer), gguf.F16, 2*embedding, embedding))
}

func (s sample) pairs() []gguftest.Pair {
	figures := map[string]any{
		"context_length":    uint32(4096),
		"embedding_length":  uint32(embedding),
		"block_count":       uint32(len(s.layers)),
		"expert_count":      uint32(experts),
		"expert_used_count": uint32(2),
	}
	for key, v := range s.figures {
		figures[key] = v
	}
	pairs := append([]gguftest.Pair{gguftest.KV("general.architecture", s.architecture)}, s.general...)
	for key, v := range figures {
		if v != nil {
			pairs = append(pairs, gguftest.KV(s.architecture+"."+key, v))
		}
	}
	return pairs
}

func (s sample) tensors() []gguftest.Tensor {
	all := s.outer
	if all == nil {
		all = []gguftest.Tensor{
			t("token_embd.weight", gguf.Q6_K, embedding, vocab),
			t("output_norm.weight", gguf.F32, embedding),
			t("output.weight", gguf.Q6_K, embedding, vocab),
		}
	}
	for i, layer := range s.layers {
		all = append(all, layer(i)...)
	}
	return all
}

// write puts the sample's file into a directory of its own.
func (s sample) write(test *testing.T) string {
	test.Helper()
	if s.architecture == "" {
		s.architecture = "qwen3moe"
	}
	path := filepath.Join(test.TempDir(), "sample.gguf")
	require.NoError(test, os.WriteFile(path, gguftest.File(s.pairs(), s.tensors()), 0o600))
	return path
}

func (s sample) profile(test *testing.T) *model.Profile {
	test.Helper()
	p, err := model.Read(s.write(test))
	require.NoError(test, err)
	return p
}

type layers = []func(int) []gguftest.Tensor
