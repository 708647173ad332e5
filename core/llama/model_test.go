package llama

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newContext makes a context with two threads and f16 keys and values.
func newContext(t *testing.T, m *Model, length, ubatch int) *Context {
	t.Helper()
	f16, err := m.lib.KVType("f16")
	require.NoError(t, err)
	pool := m.lib.NewThreadpool(2, 0)
	c, err := m.NewContext(ContextOptions{Length: length, Ubatch: ubatch, Threads: 2, ThreadsBatch: 2, TypeK: f16, TypeV: f16, FlashAttn: -1}, pool)
	require.NoError(t, err)
	t.Cleanup(func() {
		c.Free()
		pool.Free()
	})
	return c
}

// best is the index of the largest.
func best(logits []float32) int32 { return int32(slices.Index(logits, slices.Max(logits))) }

func TestTokens(t *testing.T) {
	m := open(t, ModelOptions{})
	require.Equal(t, 512, m.VocabSize())
	const begin, end = 1, 2
	for _, text := range []string{"", "a", "Hello, world", "two  blanks", "ends with one ", "line\nline\ttab", "grüße 日本語", "not UTF-8: \xff\xfe", strings.Repeat("long ", 2000)} {
		tokens, err := m.Tokenize(text)
		require.NoError(t, err)
		require.NotEmpty(t, tokens, "%q", text)
		assert.EqualValues(t, begin, tokens[0], "%q", text)
		var back []byte
		for _, id := range tokens {
			back = append(back, m.Piece(id)...)
		}
		assert.Equal(t, text, strings.TrimPrefix(string(back), " "), "a vocabulary of this kind may put a blank first")
	}

	tokens, err := m.Tokenize("a</s>")
	require.NoError(t, err)
	assert.EqualValues(t, end, tokens[len(tokens)-1], "special tokens in the text count")
	assert.True(t, m.IsEnd(end))
	assert.False(t, m.IsEnd(begin))
	for _, id := range []int32{begin, end, -1, math.MinInt32, 512, math.MaxInt32} {
		assert.Empty(t, m.Piece(id), id)
		assert.Equal(t, id == end, m.IsEnd(id), id)
	}
}

func TestDecode(t *testing.T) {
	m := open(t, ModelOptions{})
	c := newContext(t, m, 200, 64)
	assert.Equal(t, 256, c.Length(), "llama.cpp rounds up")
	prompt, err := m.Tokenize("the same prompt")
	require.NoError(t, err)
	require.NoError(t, c.Decode(nil), "nothing to do")
	logits := func(c *Context, batches ...[]int32) []float32 {
		c.Clear()
		for _, b := range batches {
			require.NoError(t, c.Decode(b))
		}
		return slices.Clone(c.Logits())
	}
	once := logits(c, prompt)
	require.Len(t, once, m.VocabSize())
	assert.NotContains(t, once, float32(math.NaN()))
	assert.NotEqual(t, slices.Min(once), slices.Max(once))
	assert.Equal(t, once, logits(c, prompt), "Clear forgets every token")
	assert.NotEqual(t, once, logits(c, prompt, prompt[1:]), "positions follow those before")
	assert.Equal(t, once, logits(newContext(t, m, 200, 64), prompt))

	require.ErrorContains(t, c.Decode(make([]int32, 65)), "65 tokens in one batch are more than the context's 64")
	c.Clear()
	for range c.Length() / 64 {
		require.NoError(t, c.Decode(make([]int32, 64)))
	}
	require.EqualError(t, c.Decode([]int32{5}), "the context has no room left for the tokens")
	require.Len(t, c.Logits(), m.VocabSize(), "what was decoded stands")
}

func TestAbort(t *testing.T) {
	m := open(t, ModelOptions{})
	prompt := make([]int32, 1024)
	for i := range prompt {
		prompt[i] = int32(3 + i%256)
	}
	begin := time.Now()
	require.NoError(t, newContext(t, m, 1024, 1024).Decode(prompt))
	whole := time.Since(begin)

	c := newContext(t, m, 1024, 1024)
	begin = time.Now()
	time.AfterFunc(whole/20, c.Abort)
	err := c.Decode(prompt)
	took := time.Since(begin)
	require.ErrorIs(t, err, ErrAborted)
	assert.GreaterOrEqual(t, took, whole/20, "it was under way")
	require.ErrorIs(t, c.Decode(prompt[:1]), ErrAborted, "and so is every later one")
}

func TestLoadOptions(t *testing.T) {
	l := library(t)
	path := small(t)
	trained := func(o ModelOptions) int32 {
		m, err := l.LoadModel(t.Context(), path, o)
		require.NoError(t, err)
		defer m.Free()
		return l.ModelContextTrain(m.handle)
	}
	assert.EqualValues(t, 32768, trained(ModelOptions{}))
	assert.EqualValues(t, 77, trained(ModelOptions{IntKV: map[string]int64{"qwen3moe.context_length": 77, "qwen3moe.expert_used_count": 2}}))

	var fractions []float64
	trained(ModelOptions{Progress: func(f float64) bool { fractions = append(fractions, f); return true }})
	require.NotEmpty(t, fractions)
	assert.True(t, slices.IsSorted(fractions))
	assert.InDelta(t, 1, fractions[len(fractions)-1], 0)

	for name, c := range map[string]struct {
		o    ModelOptions
		says string
	}{
		"a long key":      {ModelOptions{IntKV: map[string]int64{strings.Repeat("k", 128): 1}}, "is longer than llama.cpp takes"},
		"a wrong pattern": {ModelOptions{Overrides: []Override{{"blk(", l.CPUBufferType()}}}, "llama.cpp can't load it: "},
		"many overrides":  {ModelOptions{Overrides: make([]Override, 4096)}, "4096 tensor overrides and llama.cpp takes 4095"},
		"a refused load":  {ModelOptions{Progress: func(float64) bool { return false }}, "llama.cpp can't load it: "},
	} {
		_, err := l.LoadModel(t.Context(), path, c.o)
		assert.ErrorContains(t, err, c.says, name)
	}

	ctx, cancel := context.WithCancel(t.Context())
	_, err := l.LoadModel(ctx, path, ModelOptions{Progress: func(float64) bool { cancel(); return true }})
	require.True(t, errors.Is(err, context.Canceled), err)
}

func TestOverridesChooseTheBuffer(t *testing.T) {
	m := open(t, ModelOptions{Overrides: []Override{{`blk\.\d+\.ffn_.*_exps\.weight`, library(t).CPUBufferType()}}})
	plain := open(t, ModelOptions{})
	prompt := []int32{1, 10, 20}
	a, b := newContext(t, m, 64, 8), newContext(t, plain, 64, 8)
	require.NoError(t, a.Decode(prompt))
	require.NoError(t, b.Decode(prompt))
	assert.Equal(t, b.Logits(), a.Logits())
}

func TestSampler(t *testing.T) {
	m := open(t, ModelOptions{})
	c := newContext(t, m, 64, 8)
	require.NoError(t, c.Decode([]int32{1, 10, 20}))
	logits := c.Logits()
	top := best(logits)
	draws := func(o SamplerOptions) (ids []int32) {
		s := m.lib.NewSampler(o)
		defer s.Free()
		for range 64 {
			ids = append(ids, s.Next(c))
		}
		return ids
	}
	allTop := slices.Repeat([]int32{top}, 64)
	for name, o := range map[string]SamplerOptions{
		"greedy":            {},
		"top-k of 1":        {Temperature: 5, TopK: 1},
		"tiny top-p":        {Temperature: 1, TopP: 1e-9},
		"min-p of 1":        {Temperature: 5, MinP: 1},
		"tiny temperature":  {Temperature: 1e-4},
		"greedy with top-k": {TopK: 40, TopP: 0.9, MinP: 0.1, Seed: 3},
	} {
		assert.Equal(t, allTop, draws(o), name)
	}

	hot := SamplerOptions{Temperature: 20, Seed: 1}
	one := draws(hot)
	assert.Equal(t, one, draws(hot), "a seed gives the same draws")
	hot.Seed = 2
	assert.NotEqual(t, one, draws(hot))
	hot.TopK = 3
	kept := slices.Clone(logits)
	slices.Sort(kept)
	for _, id := range draws(hot) {
		assert.GreaterOrEqual(t, logits[id], kept[len(kept)-3])
	}
	hot.TopK, hot.MinP = 0, 0.5 // at least half as likely as the likeliest, before the temperature
	for _, id := range draws(hot) {
		assert.GreaterOrEqual(t, float64(logits[id]), float64(logits[top])-math.Ln2-1e-4)
	}
}
