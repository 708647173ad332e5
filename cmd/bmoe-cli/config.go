package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/bmoe/bmoe/core/engine"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/core/params"
	"github.com/bmoe/bmoe/core/plan"
)

// prompt is the text to answer, from a flag, a file or standard input.
func (p *program) prompt(ctx context.Context, set *params.Set) (string, error) {
	path := set.String("file")
	switch {
	case set.Pinned("prompt"):
		return set.String("prompt"), nil
	case path == "":
		return "", wrong("what is the prompt? Give it with -p TEXT, or with -f FILE; -f - reads standard input")
	}
	text, err := p.read(ctx, path)
	if err != nil {
		return "", err
	}
	text = strings.TrimSuffix(text, "\n")
	return strings.TrimSuffix(text, "\r"), nil
}

// read reads a file, or standard input for "-", and stops waiting for it when ctx ends.
func (p *program) read(ctx context.Context, path string) (string, error) {
	type result struct {
		text []byte
		err  error
	}
	slog.Debug("reading the prompt", "file", path)
	done := make(chan result, 1)
	go func() {
		var r result
		if path == "-" {
			r.text, r.err = io.ReadAll(p.in)
		} else {
			r.text, r.err = os.ReadFile(path)
		}
		done <- r
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case r := <-done:
		if r.err != nil {
			return "", wrong("read the prompt: %w", r.err)
		}
		return string(r.text), nil
	}
}

// check refuses what the model can't do.
func check(set *params.Set, m *model.Profile) error {
	used := set.Int("n-expert-used")
	switch {
	case used == params.Auto:
	case m.ExpertCount == 0:
		return wrong("%s %d: the model has no experts", params.Flag("n-expert-used"), used)
	case used > int64(m.ExpertCount):
		return wrong("%s %d: the model has %d experts in a layer", params.Flag("n-expert-used"), used, m.ExpertCount)
	}
	return nil
}

// drawSeed chooses the seed of a run that samples and was given none.
func drawSeed(set *params.Set) error {
	if set.Float("temp") == 0 || set.Int("seed") != params.Auto {
		return nil
	}
	var seed [4]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return fmt.Errorf("draw a seed: %w", err)
	}
	return set.Put("seed", strconv.FormatUint(uint64(binary.LittleEndian.Uint32(seed[:])), 10), params.FromPlan)
}

// configure makes the run that a set describes. What was left to be chosen is left to the engine.
func configure(set *params.Set, m *model.Profile) engine.Config {
	chosen := func(name string) int { return int(max(set.Int(name), 0)) }
	c := engine.Config{
		Model:        set.String("model"),
		Context:      plan.Context(set.Int("ctx-size"), m.Context, plan.DefaultPolicy()),
		Ubatch:       chosen("ubatch"),
		Threads:      chosen("threads"),
		ThreadsBatch: chosen("threads-batch"),
		TypeK:        set.String("cache-type-k"),
		TypeV:        set.String("cache-type-v"),
		FlashAttn:    set.String("flash-attn"),
		ExpertsUsed:  chosen("n-expert-used"),
		MemoryLimit:  max(set.Int("memory"), 0),
	}
	if !set.Bool("moe-stream") || m.ExpertCount == 0 {
		return c
	}
	c.Stream = true
	c.CacheBytes = set.Int("cache-mb")
	if c.CacheBytes == params.Auto {
		c.CacheBytes = engine.CacheAuto
	}
	c.CachePin, c.CachePinFit = set.Bool("cache-pin"), set.Bool("cache-pin-fit")
	c.Lanes = chosen("io-threads")
	c.Overlap = set.Bool("overlap")
	c.Direct = set.Bool("odirect")
	c.Dense = set.String("dense-weights")
	c.ReleaseMmap = set.Bool("release-mmap")
	return c
}

// modeLine is the first line of every run: what kind of run it is.
func modeLine(c engine.Config, m *model.Profile, planned bool) string {
	switch {
	case c.Stream:
		cache := "as large as fits"
		if c.CacheBytes != engine.CacheAuto {
			cache = fmt.Sprintf("%d MiB", c.CacheBytes>>20)
		}
		overlap, reads := "no overlap", "buffered reads"
		if c.Overlap {
			overlap = "overlap"
		}
		if c.Direct {
			reads = "direct reads"
		}
		return fmt.Sprintf("mode: experts streamed from storage, cache %s, %d lanes, %s, %s, dense weights %s",
			cache, c.Lanes, overlap, reads, c.Dense)
	case m.ExpertCount == 0:
		return "mode: plain llama.cpp; the model has no experts to stream" + unlessPlanned(planned)
	case planned:
		return "mode: plain llama.cpp, nothing streamed, as planned"
	}
	return "mode: plain llama.cpp, nothing streamed" + unlessPlanned(planned)
}

func unlessPlanned(planned bool) string {
	if planned {
		return ""
	}
	return fmt.Sprintf("; %s plans the run for this machine", params.Flag("auto"))
}

// request is what to generate.
func request(set *params.Set, prompt string) engine.Request {
	return engine.Request{
		Prompt: prompt,
		Max:    int(set.Int("n-predict")),
		Sampling: engine.Sampling{
			Temperature: set.Float("temp"),
			TopK:        int(set.Int("top-k")),
			TopP:        set.Float("top-p"),
			MinP:        set.Float("min-p"),
			Seed:        uint32(max(set.Int("seed"), 0)),
		},
		IgnoreEOS: set.Bool("ignore-eos"),
	}
}

// notes are what a person should know of their own settings.
func notes(set *params.Set, m *model.Profile) []string {
	var list []string
	if set.Float("temp") > 0 {
		list = append(list, fmt.Sprintf("sampled with seed %d", set.Int("seed")))
	}
	if n := set.Int("ctx-size"); n > int64(m.Context) {
		list = append(list, fmt.Sprintf("the context is longer than the %d tokens the model was made for", m.Context))
	}
	if n := set.Int("n-expert-used"); n != params.Auto && n != int64(m.ExpertUsed) {
		list = append(list, fmt.Sprintf("a token used %d experts where the model routes to %d: the answer is not the model's own", n, m.ExpertUsed))
	}
	return list
}
