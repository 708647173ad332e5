package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/history"
	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/core/params"
	"github.com/bmoe/bmoe/core/probe"
)

// A plan alone needs no prompt, loads nothing, and goes to standard output with the line that reproduces it.
func TestPlanOnly(t *testing.T) {
	t.Parallel()
	for _, flags := range []string{"--plan-only", "--plan", "--auto --plan-only", "--plan-only --cache-mb 500"} {
		s := newStage(t)
		require.Equal(t, exitDone, s.play("-m moe.gguf "+flags), s.err.String())
		assert.Empty(t, s.config.Model, "nothing is opened")
		assert.Empty(t, s.err.String())
		page, line, found := strings.Cut(s.out.String(), "\nThe same by hand:\n  bmoe-cli ")
		require.True(t, found, s.out.String())
		assert.True(t, strings.HasPrefix(page, "Plan\n  machine    a test\n"), page)
		assert.NotContains(t, page, "\x1b")
		set, err := params.Parse(strings.Fields(line), func(string) (string, bool) { return "", false })
		require.NoError(t, err, line)
		assert.False(t, set.Bool("moe-stream"))
		assert.False(t, set.Bool("plan-only"), "the line runs")
		assert.Equal(t, "moe.gguf", set.String("model"))
	}
}

func TestPlanIsColouredOnATerminal(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.screen = true
	require.Equal(t, exitDone, s.play("-m moe.gguf --plan-only"))
	assert.Contains(t, s.out.String(), "\x1b[")
	s = newStage(t)
	s.screen, s.program.env = true, func(name string) (string, bool) { return "1", name == "NO_COLOR" }
	require.Equal(t, exitDone, s.play("-m moe.gguf --plan-only"))
	assert.NotContains(t, s.out.String(), "\x1b[")

	s = newStage(t)
	s.bars = true
	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi --auto"))
	assert.Contains(t, s.err.String(), "\x1b[1mMemory\x1b[0m\n", "a page before the run, too")
}

func TestPlanJSON(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	require.Equal(t, exitDone, s.play("-m moe.gguf --plan-json --moe-stream"))
	var made struct {
		Outcome   string
		Line      string
		Config    map[string]string
		Decisions []struct{ Knob, Value, Source, Reason, Brief string }
		Ledger    struct{ Rows []struct{ Name string } }
	}
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &made))
	assert.Equal(t, "streams", made.Outcome)
	assert.Contains(t, made.Line, " --moe-stream ")
	assert.NotEmpty(t, made.Decisions)
	assert.Equal(t, "on", made.Config["moe_stream"])
	assert.NotEmpty(t, made.Ledger.Rows)
}

// A plan measures the drive on the shard the experts are in, unless it is not to be touched or the facts are another machine's;
// with its price, a cache that would be too small gives way to experts streamed without one.
func TestDrive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	on, of := filepath.Join(dir, "machine.json"), filepath.Join(dir, "model.json")
	s := newStage(t)
	require.Equal(t, exitDone, s.play("-m moe.gguf --plan-only --save-machine "+on+" --save-model "+of), s.err.String())
	for line, want := range map[string]string{
		"-m moe.gguf --plan-only":                                           "storage-rate",
		"-m moe.gguf --plan-only --no-odirect":                              "storage-rate",
		"-m moe.gguf --plan-only --plan-explain --moe-stream --no-probe-io": "(--no-probe-io)",
		"--plan-only --plan-explain --moe-stream --model-profile " + of:     "(the model is not here)",
		"-m dense.gguf --plan-only":                                         "",
		"-m moe.gguf --plan-only --machine " + on:                           "",
		"-m moe.gguf --plan-only --save-machine " + dir + "/m":              "storage-rate",
		"-m moe.gguf --plan-only --save-model " + dir + "/m":                "storage-rate",
		"-m moe.gguf --save-machine " + dir + "/m":                          "",
	} {
		s := newStage(t)
		s.bars = true
		asked := 0
		s.instruments.Drive = func(_ context.Context, path string, _ *model.Profile, direct bool, tell func(float64)) (machine.Storage, error) {
			asked++
			assert.Equal(t, "test.gguf", path)
			assert.Equal(t, !strings.Contains(line, "--no-odirect"), direct)
			tell(0.5)
			return machine.Storage{Direct: machine.Yes("read back"), Curve: []machine.Rate{{Size: 1 << 20, Lanes: 2, Rate: 1 << 30}}, Refault: machine.Known(1e7, "read")}, nil
		}
		if strings.Contains(line, "--plan-only") {
			line += " --memory 64M"
		}
		require.Equal(t, exitDone, s.play(line), "%s: %s", line, &s.err)
		if want == "storage-rate" {
			assert.Equal(t, 1, asked, line)
			assert.Contains(t, s.err.String(), "looking at the ", line)
			assert.Regexp(t, `cache-mb +0 `, s.out.String(), line)
		} else {
			assert.Zero(t, asked, line)
		}
		assert.Contains(t, strings.Join(strings.Fields(s.out.String()), " "), want, line)
	}

	s = newStage(t)
	s.instruments.Drive = func(ctx context.Context, _ string, _ *model.Profile, _ bool, _ func(float64)) (machine.Storage, error) {
		return machine.Storage{}, context.Canceled
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Equal(t, exitInterrupted, s.main(ctx, strings.Fields("-m moe.gguf --plan-only")))
	assert.Empty(t, s.out.String())
}

// What a person attaches to a report plans the same elsewhere.
func TestSavedProfiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	on, of := filepath.Join(dir, "machine.json"), filepath.Join(dir, "model.json")
	s := newStage(t)
	require.Equal(t, exitDone, s.play("-m moe.gguf --plan-only --save-machine "+on+" --save-model "+of), s.err.String())
	here := s.out.String()

	s = newStage(t)
	s.instruments.Machine = func() (machine.Profile, error) { panic("this machine is not asked") }
	require.Equal(t, exitDone, s.play("--plan-only --machine "+on+" --model-profile "+of), s.err.String())
	there := s.out.String()
	assert.Equal(t, strings.Split(here, "The same by hand")[0], strings.Split(there, "The same by hand")[0])

	s = newStage(t)
	require.Equal(t, exitDone, s.play("--save-machine "+on), "it needs no model")
	assert.Empty(t, s.out.String())

	s = newStage(t)
	require.Equal(t, exitDone, s.play("-m moe.gguf --auto --save-machine "+on), "without a prompt nothing is run")
	assert.Empty(t, s.config.Model)
	s = newStage(t)
	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi --auto --save-machine "+on), s.err.String())
	assert.Equal(t, "Hello, wörld", s.out.String(), "with one, the machine is saved that the run was planned for")
	assert.Len(t, s.looked, 1)

	s = newStage(t)
	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi --auto --machine "+on), s.err.String())
	assert.Equal(t, "Hello, wörld", s.out.String(), "the facts of a file in place of probes")
}

func TestBadProfiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.json")
	require.NoError(t, os.WriteFile(bad, []byte(`{"profile":"machine","version":7}`), 0o600))
	for line, want := range map[string]string{
		"-m moe.gguf --plan-only --machine " + bad:           bad + ": a machine profile of version 7; this program reads version 1, so save it anew",
		"--plan-only --model-profile " + bad:                 bad + ": not a model profile: ",
		"-m moe.gguf --plan-only --machine " + dir + "/none": dir + "/none: no such file",
		"--save-machine " + dir + "/no/where":                "--save-machine: " + dir + "/no/where: cannot be written",
		"--save-model " + dir + "/x":                         "which model?",
		"--plan-only":                                        "which model?",
		"-m moe.gguf -p Hi --machine " + bad:                 "--machine does nothing without --auto",
		"-m moe.gguf -p Hi --auto --prefill-device GPU0":     "--prefill-device GPU0: this version computes on the host alone",
	} {
		s := newStage(t)
		assert.Equal(t, exitInput, s.play(line), line)
		assert.True(t, strings.HasPrefix(s.err.String(), "bmoe-cli: "+want), "%s: %s", line, &s.err)
		assert.Equal(t, 1, strings.Count(s.err.String(), "\n"), "%s: %s", line, &s.err)
		assert.Empty(t, s.config.Model, line)
	}
}

// The processor is measured for a plan, with the threads and the memory that the run is given, and not where nothing may be.
func TestTheProcessorIsMeasuredAsTheRunUsesIt(t *testing.T) {
	t.Parallel()
	type asked struct {
		threads int
		memory  int64
	}
	for args, want := range map[string]*asked{
		"-m moe.gguf --plan-only":                          {0, 0},
		"-m moe.gguf --plan-only -t 3 --memory 512MiB":     {3, 512 << 20},
		"-m moe.gguf --plan-only --no-probe-io":            nil,
		"-m moe.gguf --save-machine " + t.TempDir() + "/m": nil,
	} {
		s := newStage(t)
		var got *asked
		s.instruments.Processor = func(_ context.Context, r probe.Request, _ machine.Profile) (read, wide machine.Fact[float64], err error) {
			got = &asked{r.Threads, r.Memory}
			return machine.Known(float64(1<<30), ""), machine.Known(float64(1<<32), ""), nil
		}
		require.Equal(t, exitDone, s.play(args), "%s: %s", args, s.err.String())
		assert.Equal(t, want, got, args)
	}
}

// At the end what was predicted is held against what came of it, on the screen and in the table.
func TestOutcome(t *testing.T) {
	t.Parallel()
	measured := func() (machine.Profile, error) {
		m := machine.Profile{Name: "measured"}
		m.Memory.Available = machine.Known(int64(1<<30), "")
		return m, nil
	}
	rate := func(context.Context, probe.Request, machine.Profile) (read, wide machine.Fact[float64], err error) {
		return machine.Known(float64(1<<30), ""), wide, nil
	}
	drive := func(context.Context, string, *model.Profile, bool, func(float64)) (machine.Storage, error) {
		return machine.Storage{Curve: []machine.Rate{{Size: 1 << 20, Lanes: 4, Rate: 1 << 30}}}, nil
	}
	path := filepath.Join(t.TempDir(), "run.csv")
	s := newStage(t)
	s.words = strings.Split("a b c d", " ")
	s.instruments.Machine, s.instruments.Processor, s.instruments.Drive = measured, rate, drive
	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi --auto --moe-stream --csv "+path), s.err.String())
	assert.Regexp(t, `\nplan     predicted [0-9.]+ ms per token, took 500\.0; 100\.0% hits credited, 75\.0% measured\n$`, s.err.String())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Regexp(t, `\n# plan: predicted [0-9.]+ ms per token, took 500\.0; [^\n]*\nindex,`, string(text), "in the header")
	assert.NotContains(t, string(text), "did not end")

	s = newStage(t)
	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi --auto"))
	assert.NotContains(t, s.err.String(), "predicted ", "what was not predicted is not compared")
}

// A planned run is remembered, shown, and credited next time; without a wish for it nothing is kept.
func TestHistory(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	require.Equal(t, exitDone, s.play("--history"))
	assert.Equal(t, "no run was planned here yet; --auto plans one\n", s.out.String())

	require.Equal(t, exitDone, s.play("-m moe.gguf -p secret --auto --moe-stream"))
	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi --auto --moe-stream --no-history"))
	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi --moe-stream"), "no plan, no record")
	records, err := s.history.Records()
	require.NoError(t, err)
	require.Len(t, records, 1)
	assert.Equal(t, 0.75, records[0].HitRate)
	assert.Equal(t, 0.5, records[0].Took)
	assert.Positive(t, records[0].Cache)
	text, err := json.Marshal(records)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "secret")

	s.out.Reset()
	require.Equal(t, exitDone, s.play("--history"))
	assert.Regexp(t, `(?m)^20..-..-.. ..:..  test +4 +32 +- 500 +100% 75%$`, s.out.String())

	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi --auto --moe-stream --n-expert-used 1"), s.err.String())
	records, err = s.history.Records()
	require.NoError(t, err)
	require.Len(t, records, 2)
	assert.Equal(t, []int{0, 1}, []int{records[0].Used, records[1].Used}, "a routing width by hand is kept apart")

	long := records[0]
	long.Tokens, long.Cache, long.HitRate = 100, 8<<20, 0.6
	require.NoError(t, s.history.Add(long))
	s.out.Reset()
	require.Equal(t, exitDone, s.play("-m moe.gguf --plan-only --plan-explain --moe-stream"))
	assert.Contains(t, strings.Join(strings.Fields(s.out.String()), " "), "from 1 run of this model here")
	s.out.Reset()
	require.Equal(t, exitDone, s.play("-m moe.gguf --plan-only --plan-explain --moe-stream --no-history"))
	assert.NotContains(t, s.out.String(), "of this model here")
}

// A home that cannot be written to is no failure of the run.
func TestHistoryWithoutAPlace(t *testing.T) {
	t.Parallel()
	blocked := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	s := newStage(t)
	s.history = history.In(blocked)
	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi --auto"))
	assert.NotContains(t, s.err.String(), "history")
	assert.Equal(t, exitFailed, s.play("--history"))
}
