package main

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/bmoe/bmoe/core/engine"
	"github.com/bmoe/bmoe/core/experts"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/platform/process"
)

// generate opens a model and makes sampled text, the same in every process with the same settings.
type generate struct {
	Model   string
	Stream  bool
	Cache   int64 // as engine.Config.CacheBytes
	Limit   int64 // as engine.Config.MemoryLimit
	Overlap bool
	Repack  bool

	Prompt int // tokens; 0: the model is loaded and nothing is made
	Warm   int // tokens made before those measured
	Tokens int // tokens measured
	Passes int // how often all of it is done, the last time counting; 0: once
}

// contextLength holds the prompt and what is made.
const contextLength = 1024

// ubatch takes a prompt at once, as long as it is in the benchmarks.
const ubatch = 512

func (g generate) run(ctx context.Context) (o outcome, err error) {
	profile, err := model.Read(g.Model)
	if err != nil {
		return o, err
	}
	s, err := engine.Open(ctx, engine.Config{
		Model: g.Model, Context: contextLength, Ubatch: ubatch,
		Stream: g.Stream, CacheBytes: g.Cache, MemoryLimit: g.Limit, Overlap: g.Overlap, Direct: true, Repack: g.Repack,
	})
	if err != nil {
		return o, err
	}
	defer func() { _ = s.Close() }() // the process ends
	u, err := process.Read()
	if err != nil {
		return o, err
	}
	o.Loaded = u.StorageRead
	if g.Prompt > 0 {
		text, err := prompt(s, g.Prompt)
		if err != nil {
			return o, err
		}
		passes := max(g.Passes, 1)
		for n := range passes {
			if n == 0 && passes > 1 && s.Store() != nil {
				o.Needed, err = g.watched(ctx, s, profile, text, &o)
			} else {
				err = g.pass(ctx, s, text, &o, nil)
			}
			if err != nil {
				return o, err
			}
		}
	}
	o.Report = s.Report()
	return o, nil
}

// watched is a pass that sums up the distinct slices which the prompt asks for.
func (g generate) watched(ctx context.Context, s *engine.Session, profile *model.Profile, text string, o *outcome) (int64, error) {
	type slice struct {
		tensor string
		expert int32
	}
	asked := map[slice]bool{}
	s.Store().Trace(func(tensor string, _ int, expert int32) { asked[slice{tensor, expert}] = true })
	if err := g.pass(ctx, s, text, o, func() { s.Store().Trace(nil) }); err != nil {
		return 0, err
	}
	var bytes int64
	for a := range asked {
		if t, ok := profile.Tensor(a.tensor); ok {
			bytes += t.SliceBytes()
		}
	}
	return bytes, nil
}

// pass generates once. prefilled, when set, is called before the first token is decoded.
func (g generate) pass(ctx context.Context, s *engine.Session, text string, o *outcome, prefilled func()) error {
	var begin, end time.Time
	var before, after experts.Stats
	stats := func() (st experts.Stats) {
		if s.Store() != nil {
			st = s.Store().Stats()
		}
		return st
	}
	o.Text = nil
	request := engine.Request{
		Prompt: text, Max: g.Warm + g.Tokens + 1, IgnoreEOS: true,
		Sampling: engine.Sampling{Temperature: 1, Seed: 1},
	}
	r, err := s.Generate(ctx, request, func(t engine.Token) error {
		if t.Index < 0 { // the rest of a character
			return nil
		}
		o.Text = append(o.Text, t.ID)
		if t.Index == 0 && prefilled != nil {
			prefilled()
		}
		if t.Index == g.Warm {
			begin, before = time.Now(), stats()
		}
		end, after = time.Now(), stats()
		return nil
	})
	if err != nil {
		return err
	}
	if want := request.Max; len(o.Text) != want {
		return fmt.Errorf("%d tokens were made and not %d: %s", len(o.Text), want, r.Stop)
	}
	o.Prefill = r.Prefill
	o.Decode = stretch{
		Tokens: g.Tokens, Elapsed: end.Sub(begin), Compute: after.Compute - before.Compute,
		Cost: engine.Cost{
			Hits: after.Hits - before.Hits, Misses: after.Misses - before.Misses,
			ReadBytes: after.ReadBytes - before.ReadBytes, Wait: after.Wait - before.Wait,
		},
	}
	return nil
}

// prompt is text of so many tokens, or a few fewer where characters don't come one to a token.
func prompt(s *engine.Session, tokens int) (string, error) {
	var b strings.Builder
	for i := 1; b.Len() < 8*tokens; i++ {
		fmt.Fprintf(&b, "Ship %d left the harbour with %d barrels; on day %d the wind turned and Captain Quirk wrote: \"%d left?\" ", i, i*37%101, i*i%29, i*53%97)
	}
	text := b.String()
	var failed error
	n := sort.Search(len(text), func(n int) bool {
		ids, err := s.Tokenize(text[:n+1])
		if err != nil {
			failed = err
		}
		return err != nil || len(ids) > tokens
	})
	return text[:n], failed
}
