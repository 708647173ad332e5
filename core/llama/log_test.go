package llama

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Levels of enum ggml_log_level that only the libraries use.
const (
	logDebug = 1
	logInfo  = 2
	logWarn  = 3
)

// listen collects what slog is told, one "LEVEL message" a line, until the test ends. The log is the process's: tests that
// listen do not run side by side.
func listen(t *testing.T) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Value.String() == "llama.cpp" {
				return slog.Attr{}
			}
			return a
		},
	})))
	t.Cleanup(func() { slog.SetDefault(before) })
	return &b
}

// errorLines are the lines that reach a person.
func errorLines(log string) (lines []string) {
	for line := range strings.Lines(log) {
		if !strings.HasPrefix(line, "level=DEBUG") {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestLinesGoToTheirLevel(t *testing.T) {
	type piece struct {
		level int32
		text  string
	}
	for _, c := range []struct {
		name   string
		pieces []piece
		want   string
	}{
		{"everything but errors is for debugging", []piece{{logDebug, "d\n"}, {logInfo, "i\n"}, {logWarn, "w\n"}, {logError, "e\n"}},
			"level=DEBUG msg=d\nlevel=DEBUG msg=i\nlevel=DEBUG msg=w\nlevel=ERROR msg=e\n"},
		{"a line in pieces", []piece{{logInfo, "a"}, {logInfo, "b"}, {logCont, "c"}, {logCont, "\n"}}, "level=DEBUG msg=abc\n"},
		{"a continued error", []piece{{logError, "a"}, {logCont, "b\n"}}, "level=ERROR msg=ab\n"},
		{"several lines at once", []piece{{logError, "a\nb\nc"}, {logCont, "d\n"}}, "level=ERROR msg=a\nlevel=ERROR msg=b\nlevel=ERROR msg=cd\n"},
		{"a line without its end", []piece{{logInfo, "a"}, {logError, "e\n"}, {logInfo, "b\n"}}, "level=DEBUG msg=a\nlevel=ERROR msg=e\nlevel=DEBUG msg=b\n"},
		{"dots and blanks", []piece{{logInfo, "."}, {logCont, "..."}, {logCont, "\n"}, {logInfo, "  \n"}, {logInfo, "\n"}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := listen(t)
			for _, p := range c.pieces {
				onLog(p.level, p.text)
			}
			assert.Equal(t, c.want, log.String())
		})
	}
}

func TestCapturedErrorsAreForDebuggingOnly(t *testing.T) {
	var l *Library
	log := listen(t)
	l.captureErrors()
	onLog(logError, "one\n")
	onLog(logInfo, "not an error\n")
	onLog(logError, "two\n")
	assert.Equal(t, []string{"one", "two"}, l.captured())
	assert.Empty(t, errorLines(log.String()))
	assert.Contains(t, log.String(), "msg=one")

	onLog(logError, "three\n")
	assert.Equal(t, []string{"level=ERROR msg=three\n"}, errorLines(log.String()))
	l.captureErrors()
	assert.Empty(t, l.captured())
	assert.Zero(t, testing.AllocsPerRun(100, func() { l.captureErrors(); l.captured() }))
}

func TestNothingIsSaidAtTheUsualLevel(t *testing.T) {
	var b bytes.Buffer
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(slog.NewTextHandler(&b, nil)))
	open(t, ModelOptions{})
	assert.Empty(t, b.String())
}

func TestReason(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lines []string
		want  string
	}{
		{nil, "fallback"},
		{[]string{"llama_model_load: error loading model: unknown model architecture: 'x'", "llama_model_load_from_file_impl: failed to load model"},
			"unknown model architecture: 'x'"},
		{[]string{"llama_model_load_from_file_impl: failed to load model"}, "fallback"},
		{[]string{"gguf_init: invalid magic", "llama_model_load: error loading model: llama_model_loader: failed to load model from a.gguf"}, "invalid magic"},
		{[]string{"llama_model_load: error loading model: llama_model_loader: failed to load model from a.gguf"}, "failed to load model from a.gguf"},
		{[]string{"init: invalid token[0] = -1", "decode: failed to initialize batch"}, "invalid token[0] = -1"},
		{[]string{"gguf_init: failed to open 'a: b.gguf'"}, "failed to open 'a: b.gguf'"},
	} {
		assert.Equal(t, c.want, reason(c.lines, "fallback"), "%q", c.lines)
	}
}

func TestComputeBuffer(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int64{
		"sched_reserve:        CPU compute buffer size =   300.75 MiB":                                 300<<20 + 3<<18,
		"sched_reserve: Vulkan_Host compute buffer size = 1.5 MiB":                                     3 << 19,
		"llama_kv_cache:        CPU KV buffer size =    96.00 MiB":                                     0,
		"~llama_context: CPU compute buffer size is 300.7500 MiB, matches expectation of 300.7500 MiB": 0,
		"compute buffer size = 1.2.3 MiB":                                                              0,
		"":                                                                                             0,
	} {
		assert.Equal(t, want, computeBuffer(line), line)
	}
}

// TestComputeBuffersAreCounted holds the figure of a real context to what grows with a wider graph.
func TestComputeBuffersAreCounted(t *testing.T) {
	m := open(t, ModelOptions{})
	log := listen(t)
	for _, flash := range []int32{-1, 0, 1} {
		bytesFor := func(ubatch int) int64 {
			c, err := m.NewContext(ContextOptions{Length: 1024, Ubatch: ubatch, Threads: 1, ThreadsBatch: 1, TypeK: 1, TypeV: 1, FlashAttn: flash}, nil)
			require.NoError(t, err)
			defer c.Free()
			return c.ComputeBytes
		}
		log.Reset()
		narrow, wide := bytesFor(32), bytesFor(512)
		assert.Positive(t, narrow, log)
		// A graph holds at least the logits' row and two rows of the residual stream for each token: 512 and 256 floats.
		assert.Greater(t, wide, int64(512*(512+2*256)*4))
		assert.Greater(t, wide, 4*narrow)
		assert.Less(t, wide, int64(1<<30))
		assert.Equal(t, 2, strings.Count(log.String(), "compute buffer size = "), "one device, one line a context")
	}
}

func TestFailuresAreSaidOnce(t *testing.T) {
	l := library(t)
	path := small(t)
	log := listen(t)
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	dir := t.TempDir()
	bad := func(name string, b []byte) string {
		p := filepath.Join(dir, name)
		write(t, p, b)
		return p
	}
	for _, c := range []struct{ path, says string }{
		{filepath.Join(dir, "none.gguf"), "failed to open"},
		{bad("cut.gguf", file[:len(file)*6/10]), "not within the file bounds"},
		{bad("text.gguf", []byte("this is no model at all, only text")), "magic"},
		{bad("strange.gguf", bytes.Replace(file, []byte("qwen3moe"), []byte("qwen9moe"), 1)), "qwen9moe"},
	} {
		_, err := l.LoadModel(t.Context(), c.path, ModelOptions{})
		require.ErrorContains(t, err, "llama.cpp can't load it: ")
		assert.ErrorContains(t, err, c.says)
		assert.NotContains(t, err.Error(), "\n")
	}
	assert.Empty(t, errorLines(log.String()), "what is returned is not printed too")

	m := open(t, ModelOptions{})
	q8, err := l.KVType("q8_0")
	require.NoError(t, err)
	_, err = m.NewContext(ContextOptions{Length: 256, Ubatch: 32, Threads: 1, ThreadsBatch: 1, TypeK: q8, TypeV: q8, FlashAttn: 0}, nil)
	require.EqualError(t, err, "llama.cpp can't make a context of 256 tokens: quantized V cache requires flash_attn to be enabled")

	c := newContext(t, m, 256, 32)
	err = c.Decode([]int32{-1})
	require.ErrorContains(t, err, "llama.cpp failed to compute: invalid token[0] = -1")
	err = c.Decode([]int32{int32(m.VocabSize())})
	require.ErrorContains(t, err, "invalid token[0] = 512")
	assert.Empty(t, errorLines(log.String()))
}
