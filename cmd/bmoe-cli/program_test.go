package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/engine"
	"github.com/bmoe/bmoe/core/gguf"
	"github.com/bmoe/bmoe/core/history"
	"github.com/bmoe/bmoe/core/llama"
	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/core/params"
	"github.com/bmoe/bmoe/core/plan"
	"github.com/bmoe/bmoe/core/probe"
)

// stage is a program with everything around it replaced, and what went through it.
type stage struct {
	program
	out, err bytes.Buffer
	env      map[string]string
	config   engine.Config  // that Open was given
	request  engine.Request // that Generate was given
	closed   bool

	words    []string // that the engine answers with
	opening  func(engine.Config)
	openErr  error
	genErr   error  // after the words
	stop     func() // after the first word: an interrupt
	readFrom func() // when the profile is read

	instruments probe.Instruments // of the one look
	looked      []probe.Request
}

func newStage(t *testing.T) *stage {
	s := &stage{env: map[string]string{}, words: []string{"Hello", ",", "", " wörld"}}
	s.program = program{
		env: func(name string) (string, bool) { v, ok := s.env[name]; return v, ok },
		in:  strings.NewReader("from standard input\n"),
		out: &s.out,
		err: &s.err,
		log: func(*slog.Logger) {},
		profile: func(path string) (*model.Profile, error) {
			if s.readFrom != nil {
				s.readFrom()
			}
			switch path {
			case "moe.gguf":
				return profile(t, 8), nil
			case "dense.gguf":
				return profile(t, 0), nil
			}
			return nil, fmt.Errorf("%s: not a GGUF file", path)
		},
		look: func(ctx context.Context, _ *params.Set, r probe.Request) (probe.Found, error) {
			s.looked = append(s.looked, r)
			return s.instruments.Look(ctx, r)
		},
		open: func(ctx context.Context, c engine.Config) (session, error) {
			s.config = c
			c.Progress("load", 0.5)
			if s.opening != nil {
				s.opening(c)
			}
			if s.openErr != nil {
				return nil, s.openErr
			}
			return s, ctx.Err()
		},
		history: history.In(t.TempDir()),
		natives: fakeNatives{},
	}
	s.instruments = probe.Instruments{
		Machine: func() (machine.Profile, error) {
			return machine.Profile{Name: "a test", Memory: machine.Memory{Available: machine.Known(int64(1<<30), "the test's word")}}, nil
		},
		Devices: func(context.Context, probe.Request, machine.Profile) (probe.Accelerators, error) {
			return probe.Accelerators{}, nil
		},
		Processor: func(context.Context, probe.Request, machine.Profile) (read, wide machine.Fact[float64], err error) {
			return machine.Unknown[float64]("not measured in this test"), machine.Fact[float64]{}, nil
		},
		Placement: func(context.Context, probe.Request, probe.Accelerators) (plan.Placement, error) {
			return plan.Placement{Projection: plan.Projection{Why: "not projected in this test"}}, nil
		},
		Drive: func(context.Context, string, *model.Profile, bool, func(float64)) (machine.Storage, error) {
			return probe.Unread("a test has no drive"), nil
		},
		Headroom: func(context.Context, machine.Memory, func(float64)) (machine.Fact[int64], error) {
			return machine.Known(int64(1<<29), "held by the test"), nil
		},
	}
	return s
}

func (s *stage) Generate(ctx context.Context, r engine.Request, each func(engine.Token) error) (engine.Result, error) {
	if r.Progress != nil {
		r.Progress(0.5)
	}
	s.request = r
	s.request.Progress = nil // a function is not compared
	for i, word := range s.words {
		if ctx.Err() != nil {
			return engine.Result{Stop: engine.StopInterrupted}, nil
		}
		token := engine.Token{Index: i, ID: int32(100 + i), Text: word, Elapsed: time.Millisecond,
			Cost: engine.Cost{Hits: 3, Misses: 1, ReadBytes: 1 << 20, Wait: time.Microsecond}}
		if err := each(token); err != nil {
			return engine.Result{}, err
		}
		if s.stop != nil {
			s.stop()
		}
	}
	return engine.Result{Stop: engine.StopLimit}, s.genErr
}

func (s *stage) Report() engine.Report {
	return engine.Report{
		Mode: "the engine's mode", Libraries: "llama.cpp v0.5.0, cpu-x64", Load: 400 * time.Millisecond,
		Prefill:      engine.Phase{Tokens: 10, Elapsed: time.Second, Cost: engine.Cost{Misses: 5, ReadBytes: 7 << 20, Wait: time.Second / 2}},
		Decode:       engine.Phase{Tokens: 4, Elapsed: 2 * time.Second, Cost: engine.Cost{Hits: 12, Misses: 4, ReadBytes: 6 << 20, Wait: time.Second / 2}},
		PeakResident: 300 << 20, PeakHeld: 200 << 20, Notes: []string{"direct reads were refused"},
	}
}

func (s *stage) Close() error { s.closed = true; return nil }

// play runs a command line, words split at spaces.
func (s *stage) play(line string) int { return s.main(context.Background(), strings.Fields(line)) }

type fakeNatives struct {
	err error
	dir string
}

func (f fakeNatives) folder() (string, error)  { return f.dir, nil }
func (f fakeNatives) version() (string, error) { return "llama.cpp v0.5.0, cpu-x64", f.err }
func (f fakeNatives) devices(context.Context, *params.Set) ([]llama.Listed, []probe.Listing, error) {
	return []llama.Listed{{Name: "CPU", Description: "a processor", Free: 1 << 30, Total: 2 << 30}},
		[]probe.Listing{{Module: "npu.so", Devices: []probe.Listed{{Name: "NPU0", Description: "another"}}}, {Module: "vulkan.so", Failed: errors.New("no driver")}}, f.err
}

// profile is a model of 2 layers and, unless it is dense, 32 MiB of experts.
func profile(t *testing.T, experts int) *model.Profile {
	p := model.Profile{Architecture: "test", Context: 8192, Embedding: 256, Vocab: 512, Layers: 2, ExpertCount: experts, ExpertUsed: min(experts, 2)}
	offset := int64(4096)
	add := func(name string, dims ...int64) {
		tensor := model.Tensor{Name: name, Type: gguf.F16, Dims: [4]int64{1, 1, 1, 1}, Offset: offset}
		copy(tensor.Dims[:], dims)
		offset += tensor.Bytes()
		p.Tensors = append(p.Tensors, tensor)
	}
	add("token_embd.weight", 256, 512)
	for l := range 2 {
		add(fmt.Sprintf("blk.%d.attn_k.weight", l), 256, 256)
		add(fmt.Sprintf("blk.%d.attn_v.weight", l), 256, 256)
		if experts > 0 {
			add(fmt.Sprintf("blk.%d.ffn_up_exps.weight", l), 256, 2048, int64(experts))
			add(fmt.Sprintf("blk.%d.ffn_down_exps.weight", l), 2048, 256, int64(experts))
		}
	}
	p.Shards = []model.Shard{{Name: "test.gguf", Bytes: offset}}
	m, err := model.New(p)
	require.NoError(t, err)
	return m
}

func firstLine(b *bytes.Buffer) string {
	line, _, _ := strings.Cut(b.String(), "\n")
	return line
}

func TestOnlyTheTextIsOnStandardOutput(t *testing.T) {
	t.Parallel()
	for _, flags := range []string{"", " --moe-stream", " --auto", " --auto --plan-explain", " -v"} {
		s := newStage(t)
		require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi"+flags), s.err.String())
		assert.Equal(t, "Hello, wörld", s.out.String())
		assert.True(t, s.closed)
	}
}

func TestFirstLineIsTheMode(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"-m moe.gguf":                     "mode: plain llama.cpp, nothing streamed; --auto plans the run for this machine",
		"-m dense.gguf":                   "mode: plain llama.cpp; the model has no experts to stream; --auto plans the run for this machine",
		"-m dense.gguf --moe-stream":      "mode: plain llama.cpp; the model has no experts to stream; --auto plans the run for this machine",
		"-m dense.gguf --auto":            "mode: plain llama.cpp; the model has no experts to stream",
		"-m moe.gguf --auto":              "mode: plain llama.cpp, nothing streamed, as planned",
		"-m moe.gguf --auto --moe-stream": "mode: experts streamed from storage, cache 32 MiB, 4 lanes, overlap, direct reads, dense weights anon",
		"-m moe.gguf --moe-stream":        "mode: experts streamed from storage, cache as large as fits, 4 lanes, overlap, direct reads, dense weights anon",
		"-m moe.gguf --moe-stream --no-overlap --no-odirect --cache-mb 7 --io-threads 2 --dense-weights mmap": "mode: experts streamed from storage, cache 7 MiB, 2 lanes, no overlap, buffered reads, dense weights mmap",
	} {
		s := newStage(t)
		require.Equal(t, exitDone, s.play(line+" -p Hi"), s.err.String())
		assert.Equal(t, want, firstLine(&s.err), line)
		assert.Equal(t, s.config.Stream, strings.Contains(want, "streamed from"), line)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.env["BMOE_THREADS"], s.env["BMOE_UBATCH"] = "3", "33"
	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi --ubatch 64 -ctk q8_0 -ctv q4_0 -fa on --n-expert-used 1 --moe-stream --cache-mb 1.5G --memory 3G"))
	s.config.Progress, s.config.Fatal = nil, nil
	assert.Equal(t, engine.Config{
		Model: "moe.gguf", Context: 4096, Ubatch: 64, Threads: 3, TypeK: "q8_0", TypeV: "q4_0", FlashAttn: "on", ExpertsUsed: 1,
		Stream: true, CacheBytes: 3 << 29, Lanes: 4, Overlap: true, Direct: true, Dense: "anon", MemoryLimit: 3 << 30,
	}, s.config)
	assert.Contains(t, s.err.String(), "the answer is not the model's own")

	s = newStage(t)
	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi -c 0"))
	s.config.Progress, s.config.Fatal = nil, nil
	assert.Equal(t, engine.Config{Model: "moe.gguf", Context: 8192, TypeK: "f16", TypeV: "f16", FlashAttn: "auto"}, s.config,
		"a plain run has no streaming knob")

	s = newStage(t)
	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi --moe-stream"))
	assert.Equal(t, engine.CacheAuto, s.config.CacheBytes)
}

func TestRequest(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi"))
	assert.Equal(t, engine.Request{Prompt: "Hi", Max: 256, Sampling: engine.Sampling{TopK: 40, TopP: 0.95, MinP: 0.05}}, s.request, "greedy")

	s = newStage(t)
	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi -n 5 --top-k 7 --seed 9 --ignore-eos"))
	assert.Equal(t, engine.Request{Prompt: "Hi", Max: 5, IgnoreEOS: true,
		Sampling: engine.Sampling{Temperature: 0.8, TopK: 7, TopP: 0.95, MinP: 0.05, Seed: 9}}, s.request)

	s = newStage(t)
	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi --temp 1"))
	assert.Contains(t, s.err.String(), fmt.Sprintf("sampled with seed %d\n", s.request.Sampling.Seed))
}

func TestPrompt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "prompt")
	require.NoError(t, os.WriteFile(path, []byte("two\nlines\n\n"), 0o600))
	s := newStage(t)
	require.Equal(t, exitDone, s.main(context.Background(), []string{"-m", "moe.gguf", "-f", path}))
	assert.Equal(t, "two\nlines\n", s.request.Prompt)

	s = newStage(t)
	require.Equal(t, exitDone, s.play("-m moe.gguf -f -"))
	assert.Equal(t, "from standard input", s.request.Prompt)

	s = newStage(t)
	s.env["BMOE_PROMPT"] = "from the environment"
	require.Equal(t, exitDone, s.play("-m moe.gguf"))
	assert.Equal(t, "from the environment", s.request.Prompt)
}

// Each mistake is one line and exit code 2, and nothing was opened.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"-p Hi":                                "which model? Give its file with -m FILE; --help lists all flags",
		"-m moe.gguf":                          "what is the prompt? Give it with -p TEXT, or with -f FILE; -f - reads standard input",
		"-m moe.gguf -f no/such/file":          "read the prompt: open no/such/file: ",
		"-m text.txt -p Hi":                    "text.txt: not a GGUF file",
		"-m moe.gguf -p Hi --csv no/such/dir":  "--csv: open no/such/dir: ",
		"-m moe.gguf -p Hi -n many":            `--n-predict: "many" is not a whole number`,
		"-m moe.gguf -p Hi --cache-mb 5":       "--cache-mb does nothing without --moe-stream or --auto",
		"-m moe.gguf -p Hi --nonsense":         "there is no flag --nonsense: --help lists them",
		"moe.gguf -p Hi":                       `"moe.gguf" is not a flag: the model is given with -m, the prompt with -p`,
		"-m moe.gguf -p Hi --n-expert-used 9":  "--n-expert-used 9: the model has 8 experts in a layer",
		"-m dense.gguf -p a --n-expert-used 1": "--n-expert-used 1: the model has no experts",
		"-m moe.gguf -p a -f b":                "--prompt and --file contradict each other: a run has one prompt",
	} {
		s := newStage(t)
		assert.Equal(t, exitInput, s.play(line), line)
		assert.True(t, strings.HasPrefix(s.err.String(), "bmoe-cli: "+want), "%s: %s", line, &s.err)
		assert.Equal(t, 1, strings.Count(s.err.String(), "\n"), "%s: %s", line, &s.err)
		assert.Empty(t, s.out.String(), line)
		assert.Empty(t, s.config.Model, line)
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.openErr = fmt.Errorf("the context does not fit\nat all: %w", engine.ErrInput)
	assert.Equal(t, exitInput, s.play("-m moe.gguf -p Hi"))
	assert.Contains(t, s.err.String(), "bmoe-cli: the context does not fit; at all", "one line")

	s = newStage(t)
	s.openErr = errors.New("the drive is gone")
	assert.Equal(t, exitFailed, s.play("-m moe.gguf -p Hi"))

	s = newStage(t)
	s.genErr = errors.New("read moe.gguf: input/output error")
	assert.Equal(t, exitFailed, s.play("-m moe.gguf -p Hi"))
	assert.Contains(t, s.err.String(), "decode   4 tokens", "the report is printed after a failure too")
	assert.True(t, strings.HasSuffix(s.err.String(), "bmoe-cli: read moe.gguf: input/output error\n"))
	assert.True(t, s.closed)

	s = newStage(t)
	s.words, s.genErr = nil, fmt.Errorf("the prompt is too long: %w", engine.ErrInput)
	assert.Equal(t, exitInput, s.play("-m moe.gguf -p Hi"))
	assert.NotContains(t, s.err.String(), "decode", "nothing to report")

	s = newStage(t)
	s.program.out = broken{}
	assert.Equal(t, exitFailed, s.play("-m moe.gguf -p Hi"))
	assert.Contains(t, s.err.String(), "write to standard output: no room")
}

// What llama.cpp says before it ends the process is one line, and nothing of the run is left behind.
func TestFatal(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.csv")
	s := newStage(t)
	code := -1
	s.exit = func(c int) { code = c }
	s.opening = func(c engine.Config) { c.Fatal("ggml.c:1: the check x == y failed") }
	s.openErr = errors.New("the process would be gone")
	s.play("-m moe.gguf -p Hi --csv " + path)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, s.err.String(), "\nbmoe-cli: moe.gguf: llama.cpp can't go on with it: ggml.c:1: the check x == y failed; ")
	assert.NoFileExists(t, path)
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no room") }

func TestInterrupt(t *testing.T) {
	t.Parallel()
	t.Run("decoding", func(t *testing.T) {
		t.Parallel()
		s := newStage(t)
		ctx, cancel := context.WithCancel(context.Background())
		s.stop = cancel
		assert.Equal(t, exitInterrupted, s.main(ctx, []string{"-m", "moe.gguf", "-p", "Hi"}))
		assert.Equal(t, "Hello", s.out.String())
		assert.Contains(t, s.err.String(), "ended    interrupted\n")
		assert.True(t, s.closed)
	})
	t.Run("loading", func(t *testing.T) {
		t.Parallel()
		s := newStage(t)
		ctx, cancel := context.WithCancel(context.Background())
		s.readFrom = cancel
		s.openErr = context.Canceled
		assert.Equal(t, exitInterrupted, s.main(ctx, []string{"-m", "moe.gguf", "-p", "Hi"}))
		assert.Contains(t, s.err.String(), "interrupted\n")
	})
	t.Run("waiting for the prompt", func(t *testing.T) {
		t.Parallel()
		s := newStage(t)
		in, out := io.Pipe()
		defer out.Close()
		s.in = in
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		assert.Equal(t, exitInterrupted, s.main(ctx, []string{"-m", "moe.gguf", "-f", "-"}))
	})
}

func TestProgressLines(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi --progress"))
	lines := strings.Split(strings.TrimSpace(s.out.String()), "\n")
	require.Len(t, lines, 4)
	var last map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[3]), &last))
	assert.Equal(t, " wörld", last["text"])
	assert.Equal(t, float64(3), last["index"])
	assert.Equal(t, float64(1<<20), last["read_bytes"])
	var documented []string
	for _, f := range fields {
		documented = append(documented, f.name)
	}
	var written []string
	for name := range last {
		written = append(written, name)
	}
	assert.ElementsMatch(t, documented, written, "the help documents what is written")
}

func TestTable(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.csv")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("an older and longer run\n", 100)), 0o600))
	s := newStage(t)
	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi --auto --csv "+path))
	assert.Equal(t, "Hello, wörld", s.out.String())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	assert.True(t, strings.HasPrefix(lines[0], "# bmoe-cli "), lines[0])
	assert.Equal(t, "# mode: plain llama.cpp, nothing streamed, as planned", lines[1])
	assert.True(t, strings.HasPrefix(lines[2], "# plan: ctx-size = 4096  [policy]  "), lines[2])
	n := len(lines)
	assert.Equal(t, "index,id,elapsed_ns,hits,misses,read_bytes,wait_ns", lines[n-5])
	assert.Equal(t, "0,100,1000000,3,1,1048576,1000", lines[n-4])
	assert.Equal(t, "3,103,1000000,3,1,1048576,1000", lines[n-1])
}

// The rows so far are in the file while the run goes on.
func TestTableIsFlushed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.csv")
	s := newStage(t)
	seen := 0
	s.stop = func() {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		seen++
		assert.Equal(t, 3+seen, strings.Count(string(text), "\n"))
	}
	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi --csv "+path))
	assert.Equal(t, 4, seen)
}

func TestTableOfARunThatDidNotBegin(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.csv")
	s := newStage(t)
	require.Equal(t, exitInput, s.play("-m text.txt -p Hi --csv "+path))
	assert.NoFileExists(t, path)
	require.NoError(t, os.WriteFile(path, []byte("older"), 0o600))
	require.Equal(t, exitInput, s.play("-m text.txt -p Hi --csv "+path))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "older", string(text))
}

func TestPlanLines(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi --auto -c 512"))
	assert.Contains(t, s.err.String(), "\n  ctx-size = 512  [operator]  Set by hand\n")
	assert.Contains(t, s.err.String(), "\n  regime = fits  [derived]  The whole model, ")
	assert.Equal(t, 512, s.config.Ubatch, "the plan is what runs")

	s = newStage(t)
	s.instruments.Machine = func() (machine.Profile, error) { return machine.Profile{}, errors.New("no such file") }
	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi --auto --plan-explain"))
	assert.Contains(t, s.err.String(), "\n  budget = -  [unprobed]  nobody measured what this process may hold\n")
	assert.True(t, s.config.Stream)
	assert.Equal(t, engine.CacheAuto, s.config.CacheBytes, "the session finds out")
	assert.Equal(t, "mmap", s.config.Dense, "nothing is held on a guess")
}

func TestReport(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi --moe-stream"))
	assert.True(t, strings.HasSuffix(s.err.String(), `
mode     the engine's mode
load     0.40 s
prefill  10 tokens in 1.00 s, 10.00 tok/s
decode   4 tokens in 2.00 s, 2.00 tok/s
experts  1.5 MiB read per token, 75.0% hits, 0.50 s (25%) waiting for reads
         7 MiB read in prefill, 0.50 s (50%) waiting for reads
memory   peak 300 MiB resident, 200 MiB of it held by the run alone
with     llama.cpp v0.5.0, cpu-x64
ended    after as many tokens as were asked for
note     direct reads were refused
`), s.err.String())
}

func TestBar(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi"))
	assert.NotContains(t, s.err.String(), "\r", "none on a pipe")
	s = newStage(t)
	s.bars = true
	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi"))
	assert.Contains(t, s.err.String(), "\r")
	assert.True(t, strings.HasPrefix(s.err.String(), "mode: "), "the mode comes first")
}

func TestReportBeginsOnItsOwnLine(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.screen = true
	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi"))
	assert.Contains(t, s.err.String(), "\n\nmode ")
	assert.Equal(t, "Hello, wörld", s.out.String())
	s = newStage(t)
	s.screen, s.words = true, []string{"line\n"}
	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi"))
	assert.NotContains(t, s.err.String(), "\n\n")
}

func TestAbout(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	require.Equal(t, exitDone, s.play("--version"))
	assert.Regexp(t, `^bmoe-cli .*\nllama.cpp v0.5.0, cpu-x64\n$`, s.out.String())
	assert.Empty(t, s.err.String())

	s = newStage(t)
	s.natives = fakeNatives{err: errors.New("the libraries are missing")}
	require.Equal(t, exitFailed, s.play("--version"))
	assert.True(t, strings.HasPrefix(s.out.String(), "bmoe-cli "))
	assert.Equal(t, "bmoe-cli: the libraries are missing\n", s.err.String())

	s = newStage(t)
	require.Equal(t, exitDone, s.play("--list-devices"))
	assert.Equal(t, "CPU\t1024 of 2048 MiB free\ta processor\nNPU0\tmemory not stated\tanother\n", s.out.String())
	assert.Equal(t, "bmoe-cli: no driver\n", s.err.String())
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"-h", "--help", "-m moe.gguf --help"} {
		s := newStage(t)
		require.Equal(t, exitDone, s.play(flag))
		assert.Empty(t, s.err.String())
		for _, row := range params.All() {
			assert.Contains(t, s.out.String(), row.Name)
		}
		for _, f := range fields {
			assert.Contains(t, s.out.String(), "\n  "+f.name+" ")
		}
		for _, line := range strings.Split(s.out.String(), "\n") {
			assert.LessOrEqual(t, len(line), columns, line)
		}
	}
}

func TestLogLevel(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]slog.Level{
		"": slog.LevelError, " -v": slog.LevelDebug, " --log-level info": slog.LevelInfo, " --log-level warn": slog.LevelWarn,
	} {
		s := newStage(t)
		var got *slog.Logger
		s.program.log = func(l *slog.Logger) { got = l }
		require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi"+line))
		assert.True(t, got.Enabled(context.Background(), want), line)
		assert.False(t, got.Enabled(context.Background(), want-1), line)
	}
}
