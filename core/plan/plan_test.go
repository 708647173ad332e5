package plan

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmoe/bmoe/core/gguf"
	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/core/params"
)

const gib = int64(1) << 30

// shape is a model to plan for, with 16-bit weights.
type shape struct {
	layers, experts, used int
	embedding, hidden, kv int64
	attention             []string // tensors of a layer: a name and, as the second dimension, kv
}

// sparse has 24 layers of 32 experts of 12 MiB each, 9 GiB, beside 0.9 GiB of dense weights; a token routes to 4: 1152 MiB.
var sparse = shape{layers: 24, experts: 32, used: 4, embedding: 2048, hidden: 1024, kv: 512, attention: []string{"attn_k", "attn_v"}}

func (s shape) profile(t require.TestingT) *model.Profile {
	p := model.Profile{Architecture: "test", Context: 32768, Embedding: int(s.embedding), Vocab: 4096, Layers: s.layers,
		ExpertCount: s.experts, ExpertUsed: s.used}
	offset := int64(4096)
	add := func(name string, dims ...int64) {
		tensor := model.Tensor{Name: name, Type: gguf.F16, Dims: [4]int64{1, 1, 1, 1}, Offset: offset}
		copy(tensor.Dims[:], dims)
		offset += tensor.Bytes()
		p.Tensors = append(p.Tensors, tensor)
	}
	add("token_embd.weight", s.embedding, 4096)
	add("output.weight", s.embedding, 4096)
	for l := range s.layers {
		for _, name := range s.attention {
			add(fmt.Sprintf("blk.%d.%s.weight", l, name), s.embedding, s.kv)
		}
		add(fmt.Sprintf("blk.%d.attn_output.weight", l), s.embedding, s.embedding*4)
		if s.experts > 0 {
			add(fmt.Sprintf("blk.%d.ffn_gate_exps.weight", l), s.embedding, s.hidden, int64(s.experts))
			add(fmt.Sprintf("blk.%d.ffn_up_exps.weight", l), s.embedding, s.hidden, int64(s.experts))
			add(fmt.Sprintf("blk.%d.ffn_down_exps.weight", l), s.hidden, s.embedding, int64(s.experts))
		}
	}
	p.Shards = []model.Shard{{Name: "test.gguf", Bytes: offset}}
	m, err := model.New(p)
	require.NoError(t, err)
	return m
}

func request(t require.TestingT, args ...string) *params.Set {
	s, err := params.Parse(append([]string{"--auto"}, args...), func(string) (string, bool) { return "", false })
	require.NoError(t, err)
	return s
}

func holding(n int64) machine.Profile {
	return machine.Profile{Holdable: n, HoldableFrom: "what the test says"}
}

// decision finds the last decision about a knob.
func decision(t require.TestingT, p Plan, knob string) Decision {
	for i := len(p.Decisions) - 1; i >= 0; i-- {
		if p.Decisions[i].Knob == knob {
			return p.Decisions[i]
		}
	}
	require.Fail(t, "no decision", "about %s in %v", knob, p.Decisions)
	return Decision{}
}

func TestRegimes(t *testing.T) {
	t.Parallel()
	m := sparse.profile(t)
	for _, c := range []struct {
		holdable      int64
		regime        Regime
		stream, dense string
		cache         func(int64) bool
	}{
		{32 * gib, Fits, "off", "", nil},
		{8 * gib, ExpertsStream, "on", "anon", func(n int64) bool { return n > m.TokenCycle(0) && n < 6*gib }},
		{29 * gib / 10, ExpertsStream, "on", "anon", func(n int64) bool { return n == 0 }}, // left, but under the token cycle
		{1 * gib, DenseOversized, "on", "mmap", func(n int64) bool { return n == 0 }},
		{0, Unknown, "on", "mmap", func(n int64) bool { return n == 0 }},
	} {
		p := Make(m, holding(c.holdable), request(t))
		assert.Equal(t, c.regime, p.Regime, "%d", c.holdable)
		assert.Equal(t, c.stream, p.Set.Text("moe-stream"), "%d", c.holdable)
		assert.False(t, p.Set.Bool("auto"), "a plan is not planned again")
		if c.cache != nil {
			assert.Equal(t, c.dense, p.Set.Text("dense-weights"), "%d", c.holdable)
			assert.True(t, c.cache(p.Set.Int("cache-mb")), "%d: %s", c.holdable, p.Set.Text("cache-mb"))
			assert.True(t, p.Set.Bool("overlap"))
			assert.Equal(t, int64(4), p.Set.Int("io-threads"))
		}
	}
}

func TestTokenCycleDecides(t *testing.T) {
	t.Parallel()
	m := sparse.profile(t)
	require.Equal(t, int64(24*4*12)<<20, m.TokenCycle(0))
	narrow := Make(m, holding(3*gib), request(t, "--n-expert-used", "1"))
	assert.Positive(t, narrow.Set.Int("cache-mb"), "a narrower routing has a smaller cycle")
	assert.Contains(t, decision(t, narrow, "n-expert-used").Brief, "not the model's own")

	below := Make(m, holding(3*gib), request(t, "--cache-mb", "100"))
	assert.Equal(t, 100*params.MiB, below.Set.Int("cache-mb"), "a pin stands")
	assert.Contains(t, decision(t, below, "cache-mb").Brief, "no hits")
}

func TestPins(t *testing.T) {
	t.Parallel()
	m := sparse.profile(t)
	p := Make(m, holding(32*gib), request(t, "--moe-stream"))
	assert.Equal(t, Fits, p.Regime)
	assert.Equal(t, m.ExpertBytes(), p.Set.Int("cache-mb"), "streamed by hand where all fits: all are kept")
	assert.Equal(t, Operator, decision(t, p, "moe-stream").Source)

	p = Make(m, holding(3*gib), request(t, "--no-moe-stream"))
	assert.False(t, p.Set.Bool("moe-stream"))
	assert.Contains(t, decision(t, p, "regime").Brief, "expect it to be slow")

	p = Make(m, holding(32*gib), request(t, "--memory", "8G"))
	assert.Equal(t, ExpertsStream, p.Regime, "what a person allows counts")
	assert.Equal(t, Operator, decision(t, p, "memory").Source)
	p = Make(m, holding(8*gib), request(t, "--memory", "32G"))
	assert.Equal(t, ExpertsStream, p.Regime, "no more than there is")
	assert.Equal(t, Measured, decision(t, p, "memory").Source)
	p = Make(m, holding(0), request(t, "--memory", "8G"))
	assert.Equal(t, ExpertsStream, p.Regime)

	p = Make(m, holding(8*gib), request(t, "-c", "auto", "-ub", "33"))
	assert.Equal(t, int64(4096), p.Set.Int("ctx-size"), "auto is not a pin")
	assert.Equal(t, int64(33), p.Set.Int("ubatch"))
	assert.Equal(t, Operator, decision(t, p, "ubatch").Source)
}

func TestDenseModel(t *testing.T) {
	t.Parallel()
	dense := sparse
	dense.experts, dense.used = 0, 0
	p := Make(dense.profile(t), holding(1*gib), request(t))
	assert.Equal(t, DenseOversized, p.Regime)
	assert.False(t, p.Set.Bool("moe-stream"))
	p = Make(dense.profile(t), holding(1*gib), request(t, "--moe-stream"))
	assert.True(t, p.Set.Bool("moe-stream"), "a pin stands")
	for _, d := range p.Decisions {
		assert.NotEqual(t, "cache-mb", d.Knob, "nothing streams, so nothing is said of a cache")
	}
}

func TestContext(t *testing.T) {
	t.Parallel()
	assert.Equal(t, int64(4096), Context(params.Auto, 32768))
	assert.Equal(t, int64(2048), Context(params.Auto, 2048))
	assert.Equal(t, int64(32768), Context(0, 32768))
	assert.Equal(t, int64(99999), Context(99999, 32768))
}

// A token of context takes a row of keys and one of values in every layer that has them.
func TestContextMemory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		attention []string
		args      []string
		want      int64
	}{
		{[]string{"attn_k", "attn_v"}, nil, 24 * 512 * 4},
		{[]string{"attn_k"}, nil, 24 * 512 * 4},
		{[]string{"attn_kv_a_mqa"}, nil, 24 * 512 * 4},
		{[]string{"attn_k", "attn_v"}, []string{"-ctk", "f32"}, 24 * 512 * 6},
		{[]string{"attn_k", "attn_v"}, []string{"-ctk", "q8_0", "-ctv", "q8_0"}, 24 * 512 * 18 / 8},
		{[]string{"attn_qkv"}, nil, 0}, // narrower than its own output: of an unknown kind
		{[]string{"ssm_in"}, nil, 0},
	} {
		s := sparse
		s.attention = c.attention
		p := &planner{model: s.profile(t), set: request(t, c.args...)}
		got, known := p.kvRow()
		assert.Equal(t, c.want, got, "%v %v", c.attention, c.args)
		assert.Equal(t, c.want > 0, known)
	}
	fused := sparse
	fused.attention, fused.kv = []string{"attn_qkv"}, 2048+1024 // attn_output takes 2048
	p := &planner{model: fused.profile(t), set: request(t)}
	got, _ := p.kvRow()
	assert.Equal(t, int64(24*1024*2), got)

	fused.attention = []string{"ssm_in"}
	unknown := Make(fused.profile(t), holding(8*gib), request(t))
	assert.Equal(t, params.Auto, unknown.Set.Int("cache-mb"), "sized once the context exists")
	assert.Equal(t, Unprobed, decision(t, unknown, "cache-mb").Source)
}

func TestWidthFollowsMemory(t *testing.T) {
	t.Parallel()
	m := sparse.profile(t)
	assert.Equal(t, int64(4096), Make(m, holding(64*gib), request(t)).Set.Int("ubatch"))
	assert.Equal(t, int64(512), Make(m, holding(3*gib), request(t)).Set.Int("ubatch"))
	assert.Equal(t, int64(100), Make(m, holding(3*gib), request(t, "-c", "100")).Set.Int("ubatch"))
}

func TestLines(t *testing.T) {
	t.Parallel()
	shape := regexp.MustCompile(`^  [a-z-]+ = \S.*  \[(measured|derived|policy|operator|unprobed)\]  \S.*[^.]$`)
	for _, n := range []int64{0, gib, 3 * gib, 8 * gib, 64 * gib} {
		for _, d := range Make(sparse.profile(t), holding(n), request(t)).Decisions {
			assert.Regexp(t, shape, d.Line(false))
			assert.Regexp(t, shape, d.Line(true))
			assert.NotContains(t, d.Brief, "--", "a brief names no flag")
		}
	}
	d := Decision{"cache-mb", "2000", Derived, "the account", "the gist"}
	assert.Equal(t, "  cache-mb = 2000  [derived]  the gist", d.Line(false))
	assert.Equal(t, "  cache-mb = 2000  [derived]  the account", d.Line(true))
}

func TestProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := sparse
		s.layers = rapid.IntRange(1, 40).Draw(t, "layers")
		s.experts = rapid.IntRange(1, 64).Draw(t, "experts")
		s.used = rapid.IntRange(1, s.experts).Draw(t, "used")
		m := s.profile(t)
		n := rapid.Int64Range(0, 64*gib).Draw(t, "holdable")
		var args []string
		for _, pin := range []string{"--cache-mb=1000", "--no-overlap", "--io-threads=2", "--dense-weights=warm", "-c=777", "-ub=64", "--memory=5G", "--moe-stream"} {
			if rapid.Bool().Draw(t, pin) {
				args = append(args, pin)
			}
		}
		r := request(t, args...)
		p := Make(m, holding(n), r)

		assert.Equal(t, p, Make(m, holding(n), r), "the same plan for the same input")
		for _, row := range params.All() {
			if r.Pinned(row.Name) && row.Name != "auto" {
				assert.Equal(t, r.Text(row.Name), p.Set.Text(row.Name), "a pin stands")
				assert.True(t, p.Set.Pinned(row.Name))
			}
			if row.Lossy {
				assert.Equal(t, r.Text(row.Name), p.Set.Text(row.Name), "nothing lossy arms itself")
			}
		}
		if cache := p.Set.Int("cache-mb"); cache > 0 && p.Set.Bool("moe-stream") && !r.Pinned("cache-mb") {
			held := cache
			if p.Set.Text("dense-weights") == "anon" {
				held += m.DenseBytes()
			}
			assert.LessOrEqual(t, held, max(n, 5*gib), "no more than may be held")
			assert.True(t, n == 0 || held <= n)
			assert.GreaterOrEqual(t, cache, m.TokenCycle(0))
		}
		if n > 0 {
			more := Make(m, holding(n+gib), r)
			if more.Set.Bool("moe-stream") && p.Set.Bool("moe-stream") && p.Set.Text("ubatch") == more.Set.Text("ubatch") &&
				p.Set.Text("dense-weights") == more.Set.Text("dense-weights") {
				assert.GreaterOrEqual(t, more.Set.Int("cache-mb"), p.Set.Int("cache-mb"), "more memory, no smaller cache")
			}
		}
		back, err := params.Parse(params.Args(p.Set), func(string) (string, bool) { return "", false })
		require.NoError(t, err)
		assert.Equal(t, params.Line("x", p.Set), params.Line("x", back), "the line reproduces the plan")
	})
}

// The planner is pure: it can see no more than profiles and parameters, and names no system, vendor or backend.
func TestPure(t *testing.T) {
	t.Parallel()
	allowed := map[string]bool{"fmt": true}
	for _, name := range []string{"machine", "model", "params"} {
		allowed["github.com/bmoe/bmoe/core/"+name] = true
	}
	words := regexp.MustCompile(`(?i)\b(linux|darwin|macos|windows|android|ios|apple|nvidia|amd|intel|qualcomm|cuda|metal|vulkan|rocm|sycl|opencl|hexagon)\b`)
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	seen := 0
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		seen++
		source, err := os.ReadFile(file.Name())
		require.NoError(t, err)
		assert.Empty(t, words.FindString(string(source)), file.Name())
		tree, err := parser.ParseFile(token.NewFileSet(), file.Name(), source, parser.ImportsOnly)
		require.NoError(t, err)
		for _, i := range tree.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			require.NoError(t, err)
			assert.True(t, allowed[path], "%s imports %s", file.Name(), path)
		}
	}
	assert.Positive(t, seen)
}
