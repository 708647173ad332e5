package main

import (
	"fmt"
	"time"

	"github.com/bmoe/bmoe/core/engine"
)

const (
	promptTokens = 512 // so many fill a cache, and are one graph
	warmTokens   = 32
)

// A run that maps a model larger than its memory makes a token in seconds, so it makes few, after a short prompt.
const (
	mappedPrompt = 8
	mappedWarm   = 1
	mappedTokens = 3
)

// everything is a cache larger than any model.
const everything = int64(1) << 60

// measurements are all that a round may take, in its order: those that want the file cache empty first, then those that fill
// it, and side by side what is compared.
func (l *lab) measurements() []measurement {
	text := func(g generate) job {
		g.Model, g.Prompt, g.Warm, g.Tokens = l.bench.path, promptTokens, warmTokens, l.tokens
		return job{Generate: &g}
	}
	load := func(s subject, stream bool) job {
		return job{Generate: &generate{Model: s.path, Stream: stream, Cache: engine.CacheAuto, Limit: l.memory, Overlap: stream}}
	}
	// Plain llama.cpp is held to nothing here but by the group it may be in.
	mapped := func(s subject) job { return job{Generate: &generate{Model: s.path}} }
	confinedMapped := mapped(l.bench)
	confinedMapped.Generate.Prompt, confinedMapped.Generate.Warm, confinedMapped.Generate.Tokens = mappedPrompt, mappedWarm, mappedTokens

	in := "in " + mib(l.memory)
	return []measurement{
		{name: "drive", what: "the drive: random expert slices, direct", job: job{Drive: &drive{l.bench.path, []int{1, 2, 4, 8}, time.Second}}},
		{name: "confined", what: "streamed " + in, before: dropped, confined: true,
			job: text(generate{Stream: true, Cache: engine.CacheAuto, Overlap: true})},
		{name: "confined-mmap", what: "plain llama.cpp " + in, before: dropped, confined: true, job: confinedMapped},
		{name: "load", what: "load, streamed", before: dropped, job: load(l.bench, true)},
		{name: "load-mmap", what: "load, plain llama.cpp", before: dropped, job: mapped(l.bench)},
		{name: "shards", what: "load of shards, streamed", before: dropped, job: load(l.shards, true)},
		{name: "shards-mmap", what: "load of shards, plain llama.cpp", before: dropped, job: mapped(l.shards)},
		{name: "serial", what: "streamed, reading and computing alike, no overlap", job: text(generate{Stream: true})},
		{name: "overlap", what: "streamed, reading and computing alike, overlap", job: text(generate{Stream: true, Overlap: true})},
		{name: "plain", what: "plain llama.cpp, all in the page cache", before: whole, job: text(generate{})},
		{name: "cached", what: "streamed, all experts cached", before: asIs,
			job: text(generate{Stream: true, Cache: everything, Overlap: true, Passes: 2})},
		{name: "repacked", what: "plain llama.cpp, weights repacked", before: whole, job: text(generate{Repack: true})},
	}
}

// letters are those of the checks.
const letters = "ABCDEF"

// slack is what a run may hold besides what can be told from the model and the settings.
const slack = 150 << 20

// check compares measurements with a target.
type check struct {
	letter string
	what   string
	target float64
	aim    float64 // what we would like; 0: the target
	most   bool    // the target is the most the value may be, and not the least
	needs  []string
	value  func(o []*outcome) float64 // of one round, its outcomes ordered as in needs
	detail func(f found) string       // what the value was made of
}

func (l *lab) checks() []check {
	rate := func(name string) func(f found) string {
		return func(f found) string {
			return fmt.Sprintf("%s tok/s", f.median(func(o []*outcome) float64 { return o[0].Decode.perSecond() }, name).show("%.2f"))
		}
	}
	seconds := func(name string) func(f found) string {
		return func(f found) string {
			return f.median(func(o []*outcome) float64 { return o[0].Report.Load.Seconds() }, name).show("%.2f") + " s"
		}
	}
	ratio := func(o []*outcome) float64 { return o[0].Decode.perSecond() / o[1].Decode.perSecond() }
	cycle := float64(l.bench.profile.TokenCycle(0))
	return []check{
		{
			letter: "A", what: "all experts cached: decode, of plain llama.cpp's", target: 0.97,
			needs: []string{"cached", "plain"}, value: ratio,
			detail: func(f found) string { return rate("cached")(f) + " against " + rate("plain")(f) },
		},
		{
			letter: "A", what: "the same, of plain llama.cpp's with repacked weights (no target)",
			needs: []string{"cached", "repacked"}, value: ratio,
			detail: func(f found) string { return "against " + rate("repacked")(f) },
		},
		{
			letter: "A", what: "the same text, token for token (1: yes)", target: 1,
			needs: []string{"cached", "plain"}, value: sameText,
		},
		{
			letter: "B", what: "decode in little memory, times plain llama.cpp's", target: 30,
			needs: []string{"confined", "confined-mmap"}, value: ratio,
			detail: func(f found) string { return rate("confined")(f) + " against " + rate("confined-mmap")(f) },
		},
		{
			letter: "B", what: "decode in little memory, of what drive and processor allow", target: 0.60, aim: 0.85,
			needs: []string{"confined", "drive", "cached"},
			value: func(o []*outcome) float64 {
				reading, computing := tokenBounds(cycle, o)
				return max(reading, computing) * o[0].Decode.perSecond()
			},
			detail: func(f found) string {
				ms := func(pick func(o []*outcome) float64) string {
					return f.median(pick, "confined", "drive", "cached").show("%.1f")
				}
				return fmt.Sprintf("a token takes %s ms, reading what it misses %s, computing it %s",
					ms(func(o []*outcome) float64 { return 1e3 / o[0].Decode.perSecond() }),
					ms(func(o []*outcome) float64 { r, _ := tokenBounds(cycle, o); return 1e3 * r }),
					ms(func(o []*outcome) float64 { _, c := tokenBounds(cycle, o); return 1e3 * c }))
			},
		},
		{
			letter: "C", what: "overlap, times the same without", target: 1.15, aim: 1.5,
			needs: []string{"overlap", "serial"}, value: ratio,
			detail: func(f found) string {
				return rate("overlap")(f) + " against " + rate("serial")(f) + ", with " + l.balance
			},
		},
		{
			letter: "D", what: fmt.Sprintf("prefill of %d tokens in little memory, of what drive and processor allow", promptTokens), target: 0.70, aim: 0.90,
			needs: []string{"confined", "drive", "cached"},
			value: func(o []*outcome) float64 {
				reading, computing := prefillBounds(o)
				return max(reading, computing) / o[0].Prefill.Elapsed.Seconds()
			},
			detail: func(f found) string {
				s := func(pick func(o []*outcome) float64) string {
					return f.median(pick, "confined", "drive", "cached").show("%.2f")
				}
				return fmt.Sprintf("it takes %s s, reading its experts once %s, computing it %s",
					s(func(o []*outcome) float64 { return o[0].Prefill.Elapsed.Seconds() }),
					s(func(o []*outcome) float64 { r, _ := prefillBounds(o); return r }),
					s(func(o []*outcome) float64 { _, c := prefillBounds(o); return c }))
			},
		},
		loading("one file", "load", l.bench, seconds),
		loading("four files", "shards", l.shards, seconds),
		{
			letter: "F", what: "memory held in B, of slots, dense set, context, compute buffers and 150 MiB", target: 1, most: true,
			needs: []string{"confined"},
			value: func(o []*outcome) float64 { return float64(o[0].Report.PeakHeld) / float64(allowed(o[0])) },
			detail: func(f found) string {
				m := func(pick func(o *outcome) int64) string {
					return f.median(func(o []*outcome) float64 { return float64(pick(o[0])) / (1 << 20) }, "confined").show("%.0f")
				}
				return fmt.Sprintf("%s MiB held of %s + %s + %s + %s + 150; the control group held at most %s of %s",
					m(func(o *outcome) int64 { return o.Report.PeakHeld }),
					m(func(o *outcome) int64 { return o.Report.CacheBytes }), m(func(o *outcome) int64 { return o.Report.DenseBytes }),
					m(func(o *outcome) int64 { return o.Report.ContextBytes }), m(func(o *outcome) int64 { return o.Report.ComputeBytes }),
					m(func(o *outcome) int64 { return o.GroupPeak }), mib(l.memory))
			},
		},
	}
}

// loading is the check that a load reads little more than what is not experts.
func loading(of, name string, s subject, seconds func(string) func(found) string) check {
	return check{
		letter: "E", what: "read by a load of " + of + ", of its dense set and metadata", target: 1.05, most: true,
		needs: []string{name, name + "-mmap"},
		value: func(o []*outcome) float64 { return float64(o[0].Loaded) / float64(notExperts(s)) },
		detail: func(f found) string {
			read := func(i int) string {
				return f.median(func(o []*outcome) float64 { return float64(o[i].Loaded) / (1 << 20) }, name, name+"-mmap").show("%.0f")
			}
			return fmt.Sprintf("%s MiB of %s in %s; plain llama.cpp %s MiB in %s",
				read(0), mib(notExperts(s)), seconds(name)(f), read(1), seconds(name+"-mmap")(f))
		},
	}
}

// notExperts is what a load must read: the files without the experts and what is never loaded.
func notExperts(s subject) int64 {
	return s.profile.FileBytes() - s.profile.ExpertBytes() - s.profile.MTPBytes
}

// allowed is what a run may hold.
func allowed(o *outcome) int64 {
	r := o.Report
	return r.CacheBytes + r.DenseBytes + r.ContextBytes + r.ComputeBytes + slack
}

// sameText is 1 if two runs made the same tokens.
func sameText(o []*outcome) float64 {
	if len(o[0].Text) != len(o[1].Text) {
		return 0
	}
	for i := range o[0].Text {
		if o[0].Text[i] != o[1].Text[i] {
			return 0
		}
	}
	return 1
}

// tokenBounds are the seconds that a token can't be faster than: to read the slices it misses, at the drive's best, and to
// compute with everything cached. The outcomes are the confined run, the drive and the run with everything cached. What was
// read in vain does not count.
func tokenBounds(cycle float64, o []*outcome) (reading, computing float64) {
	return o[0].Decode.missed() * cycle / best(o[1].Rates), 1 / o[2].Decode.perSecond()
}

// prefillBounds are the same for the prompt: each slice that it asks for is read once.
func prefillBounds(o []*outcome) (reading, computing float64) {
	return float64(o[2].Needed) / best(o[1].Rates), o[2].Prefill.Elapsed.Seconds()
}
