package gates

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/engine"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/tests/synth"
)

const (
	promptTokens = 200
	madeTokens   = 256
	prompts      = 2
)

// setting is one streamed run. Its fields are the factors of the cover.
type setting struct {
	model   string
	cache   string // none, starved, half or whole
	overlap bool
	lanes   int
	direct  bool
	dense   string
	ubatch  int
	pin     bool
}

func (s setting) String() string {
	return fmt.Sprintf("%s,cache=%s,overlap=%t,lanes=%d,direct=%t,dense=%s,ubatch=%d,pin=%t", s.model, s.cache, s.overlap, s.lanes, s.direct, s.dense, s.ubatch, s.pin)
}

// factors are the values that a setting's fields take.
var factors = [][]any{
	{"qwen3moe-20m", "gpt-oss-20m", "deepseek2-20m", "deepseek2-fused-20m", "glm4moe-20m", "qwen3moe-kquant-20m", "qwen3moe-iq-20m", "qwen3moe-odd-20m", "qwen3moe-shards-20m"},
	{"none", "starved", "half", "whole"},
	{true, false},
	{1, 2, 8},
	{true, false},
	{"mmap", "anon", "pinned"},
	{1, 33, 512},
	{true, false},
}

func settingOf(v []any) setting {
	return setting{v[0].(string), v[1].(string), v[2].(bool), v[3].(int), v[4].(bool), v[5].(string), v[6].(int), v[7].(bool)}
}

// quick is the set that every test run takes: each model once, each value of every factor, and what broke before.
var quick = []setting{
	{"qwen3moe-20m", "none", true, 2, true, "anon", 512, false},
	{"qwen3moe-20m", "half", true, 8, true, "anon", 33, true},
	{"gpt-oss-20m", "starved", true, 8, true, "anon", 512, false},
	{"deepseek2-20m", "half", false, 1, false, "mmap", 33, false},
	{"deepseek2-fused-20m", "whole", true, 2, true, "anon", 512, false},
	{"glm4moe-20m", "half", true, 8, true, "mmap", 512, false},
	{"qwen3moe-kquant-20m", "starved", false, 2, true, "anon", 512, true},
	{"qwen3moe-iq-20m", "half", true, 1, true, "anon", 512, false},
	{"qwen3moe-odd-20m", "half", true, 8, true, "pinned", 512, true},
	{"qwen3moe-shards-20m", "none", true, 2, false, "anon", 1, false},
}

func TestStreamedEqualsPlain(t *testing.T) {
	set := quick
	if os.Getenv("BMOE_GATES") == "all" {
		set = nil
		for _, v := range pairwise(factors) {
			set = append(set, settingOf(v))
		}
	}
	for _, s := range set {
		t.Run(s.String(), func(t *testing.T) {
			path := modelFile(t, s.model)
			want := plain(t, path, s.ubatch)
			p, err := model.Read(path)
			require.NoError(t, err)
			cache := map[string]int64{"none": 0, "starved": p.TokenCycle(0) / 2, "half": p.ExpertBytes() / 2, "whole": 2 * p.ExpertBytes()}[s.cache]
			session, err := engine.Open(context.Background(), engine.Config{
				Model: path, Context: 1024, Ubatch: s.ubatch, Threads: 2, Stream: true,
				CacheBytes: cache, Overlap: s.overlap, Lanes: s.lanes, Direct: s.direct, Dense: s.dense,
				CachePin: s.pin, CachePinFit: s.pin,
			})
			require.NoError(t, err)
			got := run(t, session)
			require.NoError(t, session.Close())
			compare(t, want, got)
		})
	}
}

// compare finds the first logit that differs.
func compare(t *testing.T, want, got []logits) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		for step := range want[i] {
			for token := range want[i][step] {
				a, b := want[i][step][token], got[i][step][token]
				if math.Float32bits(a) != math.Float32bits(b) {
					t.Fatalf("prompt %d, token %d after it: the logit of %d is %v in the plain run and %v streamed", i, step, token, a, b)
				}
			}
		}
	}
}

// logits are the rows after a prompt and after each token made: [made+1][vocabulary].
type logits [][]float32

// run makes tokens greedily after each prompt, in one session.
func run(t *testing.T, s *engine.Session) []logits {
	t.Helper()
	ctx := context.Background()
	var all []logits
	for n := range prompts {
		s.Reset()
		tokens, err := s.Tokenize(prompt(n))
		require.NoError(t, err)
		tokens = tokens[:promptTokens]
		var rows logits
		for range madeTokens + 1 {
			row, err := s.Eval(ctx, tokens)
			require.NoError(t, err)
			rows = append(rows, append([]float32(nil), row...))
			tokens = []int32{best(row)}
		}
		all = append(all, rows)
	}
	return all
}

func best(row []float32) int32 {
	at := 0
	for i := range row {
		if row[i] > row[at] {
			at = i
		}
	}
	return int32(at)
}

// prompt is text of more than promptTokens tokens.
func prompt(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < 8*promptTokens; i++ {
		fmt.Fprintf(&b, "%d plus %d is %d, says line %d. ", i*7+n, i*13, i*20+n, i)
	}
	return b.String()
}

var plains struct {
	sync.Mutex
	rows map[string][]logits
}

// plain is the resident run of stock llama.cpp, once per model and width: some kernels choose by the number of rows.
func plain(t *testing.T, path string, ubatch int) []logits {
	t.Helper()
	plains.Lock()
	defer plains.Unlock()
	key := fmt.Sprint(path, ubatch)
	if rows, ok := plains.rows[key]; ok {
		return rows
	}
	s, err := engine.Open(context.Background(), engine.Config{Model: path, Context: 1024, Ubatch: ubatch, Threads: 2})
	require.NoError(t, err)
	rows := run(t, s)
	require.NoError(t, s.Close())
	if plains.rows == nil {
		plains.rows = map[string][]logits{}
	}
	plains.rows[key] = rows
	return rows
}

// models is where TestMain keeps the models of a run.
var models string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "bmoe-gates-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	models = dir
	code := m.Run()
	_ = os.RemoveAll(dir) // a temporary directory that stays behind fails no test
	os.Exit(code)
}

func modelFile(t *testing.T, name string) string {
	t.Helper()
	spec, err := synth.Named(name)
	require.NoError(t, err)
	path := filepath.Join(models, name+".gguf")
	if files := synth.Files(path, spec); exists(files[0]) {
		return files[0]
	}
	files, err := synth.Write(context.Background(), path, spec, nil)
	require.NoError(t, err)
	return files[0]
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
