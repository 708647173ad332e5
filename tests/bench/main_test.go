package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/engine"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/tests/synth"
)

// written is a small model's file.
func written(t *testing.T, spec synth.Spec) subject {
	t.Helper()
	paths, err := synth.Write(t.Context(), filepath.Join(t.TempDir(), "model.gguf"), spec, nil)
	require.NoError(t, err)
	p, err := model.Read(paths[0])
	require.NoError(t, err)
	return subject{paths[0], p}
}

// measured is a lab whose measurements are made up: one round, a token in the given milliseconds.
func measured(t *testing.T) *lab {
	s := written(t, mustNamed(t, "qwen3moe-20m"))
	l := &lab{options: options{memory: 3 << 30, rounds: 1, tokens: 10}, bench: s, shards: s, found: found{}, errs: map[string]error{}}
	l.list = l.measurements()
	run := func(ms float64) *outcome {
		return &outcome{
			Text:    []int32{1, 2},
			Decode:  stretch{Tokens: 10, Elapsed: time.Duration(ms * 10 * 1e6), Cost: engine.Cost{Hits: 75, Misses: 25}},
			Prefill: engine.Phase{Tokens: 512, Elapsed: 4 * time.Second},
			Report: engine.Report{
				PeakHeld: 1150 << 20, CacheBytes: 600 << 20, DenseBytes: 300 << 20, ContextBytes: 50 << 20, ComputeBytes: 50 << 20,
			},
			Loaded: notExperts(s),
		}
	}
	for name, ms := range map[string]float64{
		"confined": 100, "confined-mmap": 4000, "load": 1, "load-mmap": 1, "shards": 1, "shards-mmap": 1,
		"serial": 150, "overlap": 100, "plain": 49, "cached": 50, "repacked": 40,
	} {
		l.found[name] = []*outcome{run(ms)}
	}
	// A token misses a quarter of its cycle, which takes the drive 80 ms; the prompt's experts take it 3 s.
	perSecond := float64(s.profile.TokenCycle(0)) / 4 / 0.080
	l.found["drive"] = []*outcome{{Rates: []rate{{1, perSecond / 2}, {2, perSecond}, {4, perSecond / 3}, {8, perSecond / 4}}}}
	l.found["cached"][0].Needed = int64(3 * perSecond)
	l.found["cached"][0].Prefill.Elapsed = 3200 * time.Millisecond
	return l
}

func mustNamed(t *testing.T, name string) synth.Spec {
	t.Helper()
	s, err := synth.Named(name)
	require.NoError(t, err)
	return s
}

func TestChecksCompareWithTheirTargets(t *testing.T) {
	t.Parallel()
	want := []float64{49. / 50, 40. / 50, 1, 40, 0.80, 1.5, 0.80, 1, 1, 1}
	results := measured(t).results()
	require.Len(t, results, len(want))
	for i, r := range results {
		require.Len(t, r.values, 1, r.what)
		assert.InDelta(t, want[i], r.values.middle(), 1e-3, r.what)
		assert.True(t, r.met(), r.what)
	}
}

func TestAMissedTargetIsSaidAndFailsOnlyWhenStrict(t *testing.T) {
	t.Parallel()
	l := measured(t)
	assert.Zero(t, l.verdict(true))
	l.found["confined"][0].Report.PeakHeld++ // the most that is allowed is a limit
	l.found["plain"][0].Text = []int32{1, 3}
	var missed []string
	for _, r := range l.results() {
		if !r.met() {
			missed = append(missed, r.letter)
		}
	}
	assert.Equal(t, []string{"A", "F"}, missed)
	assert.Equal(t, 2, strings.Count(l.page(), "**missed**"))
	assert.Zero(t, l.verdict(false))
	assert.Equal(t, exitFailed, l.verdict(true))
}

func TestAFailedMeasurementFailsTheRun(t *testing.T) {
	t.Parallel()
	l := measured(t)
	l.found["drive"] = []*outcome{nil}
	l.errs["drive"] = errors.New("no direct reads")
	assert.Equal(t, exitFailed, l.verdict(false))
	assert.Contains(t, l.page(), "no direct reads")
}

func TestOnlyMakesTheChecksAskedFor(t *testing.T) {
	t.Parallel()
	l := measured(t)
	l.only = "c,F"
	var letters string
	for _, r := range l.results() {
		letters += r.letter
	}
	assert.Equal(t, "CF", letters)
}

func TestFiguresLeaveFailedRoundsOut(t *testing.T) {
	t.Parallel()
	at := func(ms int) *outcome { return &outcome{Decode: stretch{Elapsed: time.Duration(ms)}} }
	f := found{"a": {at(1), nil, at(3), at(9), at(4)}, "b": {at(1), at(1), at(1), nil, at(2)}}
	v := f.median(func(o []*outcome) float64 { return float64(o[0].Decode.Elapsed) / float64(o[1].Decode.Elapsed) }, "a", "b")
	assert.Equal(t, figure{1, 3, 2}, v)
	assert.Equal(t, "2.0 (1.0...3.0)", v.spread("%.1f"))
	assert.InDelta(t, 2.5, figure{4, 1, 2, 3}.middle(), 0, "of an even number, between the middle two")
	assert.Equal(t, "?", figure(nil).spread("%.1f"))
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                        "-folder",
		"-folder x -rounds 0":     "above 0",
		"-folder x -only A,Q":     "names others",
		"-folder x -tokens 1000":  "at most",
		"-folder x stray":         "stray",
		"-folder x -unknown":      "not defined",
		"-folder x -memory=-3072": "above 0",
	} {
		var usage bytes.Buffer
		_, err := parse(strings.Fields(args), &usage)
		require.Error(t, err, args)
		assert.Contains(t, usage.String(), want, args)
	}
	o, err := parse(strings.Fields("-folder x -memory 100"), io.Discard)
	require.NoError(t, err)
	assert.True(t, o.full())
	assert.Equal(t, int64(100<<20), o.memory)
	o.only = "A"
	assert.False(t, o.full())
}

func TestModelsAreKept(t *testing.T) {
	t.Parallel()
	spec := mustNamed(t, "qwen3moe-shards-20m")
	path := filepath.Join(t.TempDir(), "folder", "model.gguf")
	first, err := kept(t.Context(), path, spec)
	require.NoError(t, err)
	before, err := os.Stat(first)
	require.NoError(t, err)
	again, err := kept(t.Context(), path, spec)
	require.NoError(t, err)
	after, err := os.Stat(again)
	require.NoError(t, err)
	assert.True(t, os.SameFile(before, after), "not written twice")

	require.NoError(t, os.Truncate(first, 5))
	_, err = kept(t.Context(), path, spec)
	require.NoError(t, err)
	whole, err := os.Stat(first)
	require.NoError(t, err)
	assert.Equal(t, before.Size(), whole.Size(), "another size is another model")
}

func TestDriveReadsSlices(t *testing.T) {
	t.Parallel()
	s := written(t, mustNamed(t, "qwen3moe-odd-20m"))
	o, err := drive{s.path, []int{1, 2}, 20 * time.Millisecond}.run()
	if err != nil {
		require.ErrorContains(t, err, "can't be measured", "on a file system without direct reads")
		return
	}
	require.Len(t, o.Rates, 2)
	assert.Positive(t, best(o.Rates))
}

func TestAChildWithoutAJobSaysSo(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe() // stays open, as a parent's
	go func() { _, _ = io.WriteString(w, "{}\n") }()
	err := child(context.Background(), r, io.Discard)
	require.ErrorContains(t, err, "nothing to do")
}

// The streamed run counts what it read, and makes the plain run's text.
func TestGenerate(t *testing.T) {
	s := written(t, mustNamed(t, "qwen3moe-20m"))
	g := generate{Model: s.path, Prompt: 40, Warm: 3, Tokens: 5}
	plain, err := g.run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 40, plain.Prefill.Tokens)
	assert.Len(t, plain.Text, 9)
	assert.Positive(t, plain.Decode.Elapsed)
	assert.Zero(t, plain.Decode.Cost)

	g.Stream, g.Overlap, g.Cache, g.Passes = true, true, everything, 2
	cached, err := g.run(t.Context())
	require.NoError(t, err)
	assert.InDelta(t, 1, sameText([]*outcome{&plain, &cached}), 0)
	assert.Zero(t, cached.Decode.Misses, "the first pass filled the cache")
	slices := int64(5 * 3 * s.profile.ExpertUsed * s.profile.Layers)
	assert.Equal(t, slices, cached.Decode.Hits, "a token asks each layer for its experts' gate, up and down")
	assert.Positive(t, cached.Needed)
	assert.LessOrEqual(t, cached.Needed, s.profile.ExpertBytes())
	assert.Positive(t, cached.Report.ContextBytes)
	assert.Positive(t, cached.Report.ComputeBytes)

	g.Cache, g.Passes = 0, 1
	starved, err := g.run(t.Context())
	require.NoError(t, err)
	assert.Zero(t, starved.Decode.Hits)
	assert.InDelta(t, 1, starved.Decode.missed(), 0)
	assert.InDelta(t, 1, sameText([]*outcome{&plain, &starved}), 0)
}
