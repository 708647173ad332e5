package model_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/gguf"
	"github.com/bmoe/bmoe/core/gguf/gguftest"
	"github.com/bmoe/bmoe/core/model"
)

// Sizes of the sample's tensors.
const (
	slice4    = embedding * width / 256 * 144 // a slice in Q4_K
	slice6    = embedding * width / 256 * 210 // in Q6_K
	table     = embedding / 256 * 210 * vocab // an embedding or an output head
	norm      = embedding * 4
	attend    = norm + embedding*embedding/32*34
	router    = embedding * experts * 4
	bias      = width * experts * 4
	splitRest = attend + router + bias + slice4 // what a split layer has besides its experts
	denseRest = attend + 8*slice4
)

func TestSplit(t *testing.T) {
	t.Parallel()
	p := sample{
		general: []gguftest.Pair{gguftest.KV("general.name", "Sample 1B")},
		layers:  layers{dense, split(gguf.Q4_K), split(gguf.Q6_K)},
	}.profile(t)
	assert.Equal(t, "Sample 1B", p.Name)
	assert.Equal(t, "qwen3moe", p.Architecture)
	assert.Equal(t, []int{4096, embedding, vocab, 3, experts, 2}, []int{p.Context, p.Embedding, p.Vocab, p.Layers, p.ExpertCount, p.ExpertUsed})
	assert.Equal(t, 1, p.LeadingDense())
	assert.False(t, p.TiedHead())
	assert.False(t, p.Fused())
	assert.Nil(t, p.UsedPerLayer)

	layer1, layer2 := int64(3*slice4), int64(2*slice4+slice6) // one expert of each
	assert.Equal(t, 2*(layer1+layer2), p.TokenCycle(0))
	assert.Equal(t, 3*(layer1+layer2), p.TokenCycle(3))
	assert.Equal(t, experts*(layer1+layer2), p.TokenCycle(100), "no layer has more")
	assert.Equal(t, experts*(layer1+layer2), p.ExpertBytes())
	assert.Equal(t, int64(2*table+norm+denseRest+2*splitRest), p.DenseBytes())
	assert.Equal(t, []model.LayerBytes{
		{Other: denseRest},
		{Experts: experts * layer1, Other: splitRest},
		{Experts: experts * layer2, Other: splitRest},
	}, p.LayerBytes())
	assert.Equal(t, model.LayerBytes{Experts: experts * layer2, Other: denseRest}, p.LargestLayer())

	assert.Equal(t, model.Access{Bytes: table, PerToken: 210}, p.Shaped(model.Rows))
	whole := p.DenseBytes() - table
	assert.Equal(t, model.Access{Bytes: whole, PerToken: whole}, p.Shaped(model.Whole))
	assert.Equal(t, model.Access{Bytes: p.ExpertBytes(), PerToken: p.TokenCycle(0)}, p.Shaped(model.Slice))

	assert.Equal(t, []model.TypeBytes{{Type: gguf.Q4_K, Bytes: 5 * experts * slice4}, {Type: gguf.Q6_K, Bytes: experts * slice6}}, p.ExpertTypes())
	assert.Equal(t, int64(slice4), p.SliceSize())
	assert.Equal(t, 0, p.ExpertShard())
	assert.Equal(t, "blk.0.ffn_up.weight", p.Widest().Name)
	assert.Greater(t, p.FileBytes(), p.DenseBytes()+p.ExpertBytes())
}

func TestExperts(t *testing.T) {
	t.Parallel()
	path := sample{layers: layers{split(gguf.Q6_K), fused, ungated}}.write(t)
	p, err := model.Read(path)
	require.NoError(t, err)
	file, err := gguf.Open(path)
	require.NoError(t, err)
	var found []string
	for e := range p.Experts() {
		found = append(found, e.Name)
		in, ok := file.Tensor(e.Name)
		require.True(t, ok)
		assert.Equal(t, in.Offset, e.Offset)
		assert.Equal(t, in.Size, e.Bytes())
		assert.Equal(t, experts, e.Slices())
		assert.Equal(t, in.Size/experts, e.SliceBytes())
	}
	assert.Equal(t, []string{
		"blk.0.ffn_gate_exps.weight", "blk.0.ffn_up_exps.weight", "blk.0.ffn_down_exps.weight",
		"blk.1.ffn_gate_up_exps.weight", "blk.1.ffn_down_exps.weight",
		"blk.2.ffn_up_exps.weight", "blk.2.ffn_down_exps.weight",
	}, found)
	assert.True(t, p.Fused())
	assert.Equal(t, int64(2*(2*slice4+slice6+3*slice4+2*slice4)), p.TokenCycle(0))
	for e := range p.Experts() { // stopping early is allowed
		assert.Equal(t, model.Gate, e.Kind)
		break
	}
}

// One place says which tensors are experts, and the pattern given to llama.cpp agrees with it.
func TestExpertKind(t *testing.T) {
	t.Parallel()
	all := regexp.MustCompile(model.ExpertPattern(-1))
	twelve := regexp.MustCompile(model.ExpertPattern(12))
	for name, want := range map[string]struct {
		layer int
		kind  model.Kind
	}{
		"blk.0.ffn_gate_exps.weight":      {0, model.Gate},
		"blk.12.ffn_up_exps.weight":       {12, model.Up},
		"blk.120.ffn_gate_up_exps.weight": {120, model.GateUp},
		"blk.12.ffn_down_exps.weight":     {12, model.Down},
		"blk.12.ffn_down_exps.bias":       {-1, model.NotExpert},
		"blk.12.ffn_down_exps.scale":      {-1, model.NotExpert},
		"blk.12.ffn_up_shexp.weight":      {-1, model.NotExpert},
		"blk.12.ffn_up_chexps.weight":     {-1, model.NotExpert},
		"blk.12.ffn_norm_exps.weight":     {-1, model.NotExpert},
		"blk.12.ffn_up.weight":            {-1, model.NotExpert},
		"ffn_up_exps.weight":              {-1, model.NotExpert},
		"blk.x.ffn_up_exps.weight":        {-1, model.NotExpert},
		"blk.12":                          {-1, model.NotExpert},
		"blkx12.ffn_up_exps.weight":       {-1, model.NotExpert},
		"blk.12.ffn_up_exps.weight.x":     {-1, model.NotExpert},
		"enc.blk.12.ffn_up_exps.weight":   {-1, model.NotExpert},
	} {
		layer, kind := model.ExpertKind(name)
		assert.Equal(t, want.layer, layer, name)
		assert.Equal(t, want.kind, kind, name)
		assert.Equal(t, kind != model.NotExpert, all.MatchString(name), name)
		assert.Equal(t, kind != model.NotExpert && layer == 12, twelve.MatchString(name), name)
	}
}

func TestDenseModel(t *testing.T) {
	t.Parallel()
	for name, used := range map[string]any{"no experts": nil, "one": uint32(1)} {
		p := sample{figures: map[string]any{"expert_count": used, "expert_used_count": used}, layers: layers{dense, dense}}.profile(t)
		assert.Zero(t, p.ExpertCount, name)
		assert.Zero(t, p.ExpertUsed, name)
		assert.Zero(t, p.TokenCycle(0))
		assert.Zero(t, p.ExpertBytes())
		assert.Zero(t, p.SliceSize())
		assert.Empty(t, p.ExpertTypes())
		assert.Equal(t, -1, p.ExpertShard())
		assert.Equal(t, 2, p.LeadingDense())
		assert.Equal(t, model.LayerBytes{Other: denseRest}, p.LargestLayer())
	}
}

func TestTiedHead(t *testing.T) {
	t.Parallel()
	p := sample{
		layers: layers{ungated},
		outer:  []gguftest.Tensor{gguftest.NewTensor("token_embd.weight", gguf.Q6_K, embedding, 5000), gguftest.NewTensor("token_types.weight", gguf.F16, embedding, 2)},
	}.profile(t)
	assert.True(t, p.TiedHead())
	assert.Equal(t, "token_embd.weight", p.Widest().Name)
	assert.Equal(t, int64(5000*embedding), p.Widest().Elements())
	assert.Equal(t, model.Access{Bytes: 2 * embedding * 2, PerToken: embedding * 2}, p.Shaped(model.Rows))
}

func TestTables(t *testing.T) {
	t.Parallel()
	p := sample{layers: layers{func(i int) []gguftest.Tensor {
		return append(ungated(i), gguftest.NewTensor("blk.0.ffn_gate_tid2eid.weight", gguf.I32, 2, vocab))
	}}}.profile(t)
	assert.Equal(t, model.Access{Bytes: table + 2*vocab*4, PerToken: 210 + 8}, p.Shaped(model.Rows))
}

func TestNothingWhole(t *testing.T) {
	t.Parallel()
	p := model.Profile{Tensors: []model.Tensor{{Name: "blk.0.ffn_up_exps.weight", Kind: model.Up}}}
	assert.Equal(t, model.Tensor{}, p.Widest())
}

func TestRoutingPerLayer(t *testing.T) {
	t.Parallel()
	p := sample{figures: map[string]any{"expert_used_count": []int32{2, 0, 4}}, layers: layers{ungated, ungated, ungated}}.profile(t)
	assert.Equal(t, 4, p.ExpertUsed)
	assert.Equal(t, []int{2, 0, 4}, p.UsedPerLayer)
	assert.Equal(t, int64(6*2*slice4), p.TokenCycle(0))
	assert.Equal(t, p.TokenCycle(0), p.Shaped(model.Slice).PerToken)
	assert.Equal(t, int64(3*2*slice4), p.TokenCycle(1))

	p = sample{figures: map[string]any{"expert_used_count": []uint32{2, 2}}, layers: layers{ungated, ungated}}.profile(t)
	assert.Equal(t, 2, p.ExpertUsed)
	assert.Nil(t, p.UsedPerLayer, "they do not differ")
}

// A block for multi-token prediction is in the file and in nothing else.
func TestPrediction(t *testing.T) {
	t.Parallel()
	plain := sample{layers: layers{ungated, split(gguf.Q4_K)}}.profile(t)
	for name, c := range map[string]struct {
		layers layers
		nextn  uint32
	}{
		"one":                    {layers{ungated, split(gguf.Q4_K), prediction}, 1},
		"two":                    {layers{ungated, split(gguf.Q4_K), prediction, prediction}, 2},
		"declared but not there": {layers{ungated, split(gguf.Q4_K)}, 1},
		"of a model that drafts": {layers{ungated, split(gguf.Q4_K)}, 2},
	} {
		p := sample{figures: map[string]any{"nextn_predict_layers": c.nextn}, layers: c.layers}.profile(t)
		assert.Equal(t, 2, p.Layers, name)
		assert.Equal(t, plain.TokenCycle(0), p.TokenCycle(0), name)
		assert.Equal(t, plain.DenseBytes(), p.DenseBytes(), name)
		assert.Equal(t, plain.ExpertBytes(), p.ExpertBytes(), name)
		there := len(c.layers) - 2
		assert.Equal(t, there, p.MTPLayers, name)
		assert.Equal(t, int64(there*(3*experts*slice4+splitRest+2*embedding*embedding*2)), p.MTPBytes, name)
		_, ok := p.Tensor("blk.2.ffn_up_exps.weight")
		assert.False(t, ok, name)
	}
}

func TestName(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"":                              "sample",
		"Qwen3 30B A3B":                 "Qwen3 30B A3B",
		"/home/somebody/models/Tiny":    "Tiny",
		`C:\Users\somebody\models\Tiny`: "Tiny",
		"/home/somebody/":               "sample",
		"\x1b[31mred\x1b[0m":            "[31mred[0m",
	} {
		p := sample{general: []gguftest.Pair{gguftest.KV("general.name", given)}, layers: layers{dense}, figures: map[string]any{"expert_count": nil, "expert_used_count": nil}}.profile(t)
		assert.Equal(t, want, p.Name)
		assert.Equal(t, "sample.gguf", p.Shards[0].Name)
	}
}

// The experts may be in any shard; where most of them are is where storage is probed.
func TestExpertShard(t *testing.T) {
	t.Parallel()
	s := sample{architecture: "qwen3moe", layers: layers{ungated, split(gguf.Q6_K)}}
	dir := t.TempDir()
	all := s.tensors()
	parts := [][]gguftest.Tensor{nil, all[:5+2], all[5+2:]}
	for i, part := range parts {
		pairs := append(s.pairs(), gguftest.KV("split.no", uint16(i)), gguftest.KV("split.count", uint16(len(parts))), gguftest.KV("split.tensors.count", int32(len(all))))
		path := filepath.Join(dir, []string{"m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"}[i])
		require.NoError(t, os.WriteFile(path, gguftest.File(pairs, part), 0o600))
	}
	p, err := model.Read(filepath.Join(dir, "m-00001-of-00003.gguf"))
	require.NoError(t, err)
	assert.Equal(t, 2, p.ExpertShard())
	assert.Equal(t, "m-00003-of-00003.gguf", p.Shards[2].Name)
	first, ok := p.Tensor("blk.0.ffn_up_exps.weight")
	require.True(t, ok)
	assert.Equal(t, 1, first.Shard)
}

// qwen36 has the shape of Qwen3.6-35B-A3B at Q4_K_M with its block for multi-token prediction.
func qwen36() ([]gguftest.Pair, []gguftest.Tensor) {
	const embedding, width, experts, vocab, blocks = 2048, 512, 256, 248320, 40
	pairs := []gguftest.Pair{
		gguftest.KV("general.architecture", "qwen35moe"),
		gguftest.KV("qwen35moe.context_length", uint32(262144)),
		gguftest.KV("qwen35moe.embedding_length", uint32(embedding)),
		gguftest.KV("qwen35moe.block_count", uint32(blocks+1)),
		gguftest.KV("qwen35moe.expert_count", uint32(experts)),
		gguftest.KV("qwen35moe.expert_used_count", uint32(8)),
		gguftest.KV("qwen35moe.nextn_predict_layers", uint32(1)),
	}
	tensors := []gguftest.Tensor{
		gguftest.NewTensor("token_embd.weight", gguf.Q4_K, embedding, vocab),
		gguftest.NewTensor("output.weight", gguf.Q6_K, embedding, vocab),
	}
	for i := range blocks + 1 {
		down := gguf.Q4_K
		if i%2 == 0 {
			down = gguf.Q6_K
		}
		blk := fmt.Sprintf("blk.%d.", i)
		tensors = append(tensors,
			gguftest.NewTensor(blk+"attn_qkv.weight", gguf.Q4_K, embedding, 8192),
			gguftest.NewTensor(blk+"ffn_gate_inp.weight", gguf.F32, embedding, experts),
			gguftest.NewTensor(blk+"ffn_gate_exps.weight", gguf.Q4_K, embedding, width, experts),
			gguftest.NewTensor(blk+"ffn_up_exps.weight", gguf.Q4_K, embedding, width, experts),
			gguftest.NewTensor(blk+"ffn_down_exps.weight", down, width, embedding, experts),
			gguftest.NewTensor(blk+"ffn_up_shexp.weight", gguf.Q4_K, embedding, width),
		)
	}
	return pairs, append(tensors, gguftest.NewTensor("blk.40.nextn.eh_proj.weight", gguf.Q4_K, 2*embedding, embedding))
}

func TestTokenCycleOfQwen36(t *testing.T) {
	t.Parallel()
	pairs, tensors := qwen36()
	path := filepath.Join(t.TempDir(), "header.gguf")
	require.NoError(t, os.WriteFile(path, gguftest.Header(pairs, tensors), 0o600))
	f, err := gguf.OpenHeader(path)
	require.NoError(t, err)
	p, err := model.FromGGUF(f)
	require.NoError(t, err)
	assert.Equal(t, int64(581), p.TokenCycle(0)>>20)
	assert.Equal(t, int64(20*8*(3*589824+2*589824+860160)), p.TokenCycle(0))
	assert.Equal(t, p.TokenCycle(0)/2, p.TokenCycle(4))
	assert.Equal(t, int64(589824), p.SliceSize())
	assert.Equal(t, "output.weight", p.Widest().Name)
	assert.Equal(t, int64(1940), p.Widest().Elements()*4>>20)
	assert.Equal(t, int64(498), p.LargestLayer().Experts>>20)
	assert.Greater(t, p.FileBytes(), int64(18<<30), "of a header alone, what the file would have")

	_, err = model.Read(path)
	assert.ErrorContains(t, err, "was cut short", "a profile to run with needs the data")
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	without := func(key string) map[string]any { return map[string]any{key: nil} }
	for name, c := range map[string]struct {
		sample sample
		says   string
	}{
		"no context":          {sample{figures: without("context_length")}, "not a language model: its metadata has no qwen3moe.context_length"},
		"no embedding":        {sample{figures: without("embedding_length")}, "no qwen3moe.embedding_length"},
		"no blocks":           {sample{figures: without("block_count")}, "no qwen3moe.block_count"},
		"a text for a number": {sample{figures: map[string]any{"context_length": "long"}}, "no usable number for qwen3moe.context_length"},
		"a huge number":       {sample{figures: map[string]any{"embedding_length": uint64(1 << 40)}}, "no usable number for qwen3moe.embedding_length"},
		"zero context":        {sample{figures: map[string]any{"context_length": uint32(0)}}, "a context length of 0"},
		"zero blocks":         {sample{figures: map[string]any{"block_count": uint32(0)}}, "block count"},
		"many blocks":         {sample{figures: map[string]any{"block_count": uint32(4e9 / 2)}}, "block count that is not within 1 to 512"},
		"fewer blocks":        {sample{figures: map[string]any{"block_count": uint32(1)}}, `"blk.1.attn_norm.weight" is of a layer that a model of 1 layers does not have`},
		"more prediction":     {sample{figures: map[string]any{"nextn_predict_layers": uint32(3)}}, "3 of its 2 blocks"},
		"no width":            {sample{figures: without("expert_used_count")}, "a token uses 0 of a layer's 8 experts"},
		"no experts":          {sample{figures: without("expert_count")}, "a token uses 2 of a layer's 0 experts"},
		"too wide":            {sample{figures: map[string]any{"expert_used_count": uint32(9)}}, "a token uses 9 of a layer's 8 experts"},
		"too many experts":    {sample{figures: map[string]any{"expert_count": uint32(2000)}}, "a token uses 2 of a layer's 2000 experts"},
		"other experts":       {sample{figures: map[string]any{"expert_count": uint32(16)}}, "holds 8 experts of a layer's 16"},
		"widths for others":   {sample{figures: map[string]any{"expert_used_count": []uint32{1, 2, 3}}}, "gives qwen3moe.expert_used_count for 3 layers of 2"},
		"widths of text":      {sample{figures: map[string]any{"expert_used_count": []string{"1", "2"}}}, "no usable numbers for qwen3moe.expert_used_count"},
		"negative widths":     {sample{figures: map[string]any{"expert_used_count": []int32{1, -2}}}, "no usable numbers for qwen3moe.expert_used_count"},
		"groups":              {sample{figures: map[string]any{"expert_group_count": uint32(3), "expert_group_used_count": uint32(1)}}, "uses 1 of 3 groups of a layer's 8 experts"},
		"all groups":          {sample{figures: map[string]any{"expert_group_count": uint32(4), "expert_group_used_count": uint32(4)}}, "uses 4 of 4 groups"},
		"as many groups":      {sample{figures: map[string]any{"expert_group_count": uint32(8), "expert_group_used_count": uint32(4)}}, "uses 4 of 8 groups"},
		"groups as text":      {sample{figures: map[string]any{"expert_group_count": "4"}}, "no usable number for qwen3moe.expert_group_count"},
		"gating":              {sample{figures: map[string]any{"expert_gating_func": uint32(5)}}, "unknown way 5 of weighing experts"},
		"rope":                {sample{figures: map[string]any{"rope.scaling.type": "sideways"}}, `unknown rope scaling "sideways"`},
		"architecture":        {sample{architecture: "qwen\x1b[1m"}, `no architecture can be called "qwen\x1b[1m"`},
		"no vocabulary":       {sample{outer: []gguftest.Tensor{gguftest.NewTensor("output_norm.weight", gguf.F32, 4)}}, "a vocabulary size of 0"},
		"an empty tensor":     {sample{outer: []gguftest.Tensor{gguftest.NewTensor("token_embd.weight", gguf.F32, 0, 8)}}, `tensor "token_embd.weight" is empty`},
		"up without down":     {sample{layers: layers{func(i int) []gguftest.Tensor { return ungated(i)[:3] }, dense}}, "layer 0 has an incomplete set of expert tensors"},
		"a fourth dimension": {sample{layers: layers{dense, func(i int) []gguftest.Tensor {
			return append(ungated(i), gguftest.NewTensor("blk.1.ffn_gate_exps.weight", gguf.Q4_K, embedding, width, experts, 2))
		}}}, "holds 16 experts of a layer's 8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.sample.layers == nil {
				c.sample.layers = layers{dense, ungated}
			}
			path := c.sample.write(t)
			_, err := model.Read(path)
			require.Error(t, err)
			assert.ErrorContains(t, err, path+": ")
			assert.ErrorContains(t, err, c.says)
		})
	}
}

func TestReadOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := model.Read(dir)
	assert.ErrorContains(t, err, "a directory")

	path := filepath.Join(dir, "m.gguf")
	require.NoError(t, os.WriteFile(path, gguftest.File(nil, nil), 0o600))
	_, err = model.Read(path)
	assert.EqualError(t, err, path+": not a language model: its metadata names no architecture")

	tokens := gguftest.KV("tokenizer.ggml.tokens", slices.Repeat([]string{"a"}, 7))
	s := sample{architecture: "llama", figures: map[string]any{"expert_count": nil, "expert_used_count": nil, "block_count": uint32(1)}, general: []gguftest.Pair{tokens}}
	require.NoError(t, os.WriteFile(path, gguftest.File(s.pairs(), nil), 0o600))
	_, err = model.Read(path)
	assert.EqualError(t, err, path+": no tensors")

	s.figures["expert_count"] = uint32(1)
	s.architecture, s.outer, s.layers = "hunyuan-dense", []gguftest.Tensor{gguftest.NewTensor("output_norm.weight", gguf.F32, embedding)}, layers{dense}
	p := s.profile(t)
	assert.Equal(t, 7, p.Vocab)
	assert.Zero(t, p.ExpertCount, "one expert is none")
}
