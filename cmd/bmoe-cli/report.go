package main

import (
	"fmt"
	"io"
	"time"

	"github.com/bmoe/bmoe/core/engine"
)

// report prints the end of a run: one subject a line.
func report(w io.Writer, r engine.Report, stop engine.Stop, notes []string) {
	line := func(subject, format string, args ...any) {
		fmt.Fprintf(w, "%-9s%s\n", subject, fmt.Sprintf(format, args...))
	}
	line("mode", "%s", r.Mode)
	line("load", "%s", seconds(r.Load))
	line("prefill", "%s", rate(r.Prefill))
	line("decode", "%s", rate(r.Decode))
	if d := r.Decode; d.Hits+d.Misses > 0 {
		line("experts", "%.1f MiB read per token, %.1f%% hits, %s (%.0f%%) waiting for reads",
			float64(d.ReadBytes)/float64(max(d.Tokens, 1))/(1<<20), 100*float64(d.Hits)/float64(d.Hits+d.Misses),
			seconds(d.Wait), 100*share(d.Wait, d.Elapsed))
	}
	if p := r.Prefill; p.Hits+p.Misses > 0 {
		line("", "%d MiB read in prefill, %s (%.0f%%) waiting for reads", p.ReadBytes>>20, seconds(p.Wait), 100*share(p.Wait, p.Elapsed))
	}
	line("memory", "peak %d MiB resident, %d MiB of it held by the run alone", r.PeakResident>>20, r.PeakHeld>>20)
	if locked := r.CachePinned + r.DensePinned; locked > 0 || r.CachePinRefused+r.DensePinRefused > 0 {
		line("", "%d MiB locked in place: %d of the cache and %d of the dense set; the system refused %d and %d MiB of them",
			locked>>20, r.CachePinned>>20, r.DensePinned>>20, r.CachePinRefused>>20, r.DensePinRefused>>20)
	}
	line("with", "%s", r.Libraries)
	if stop != "" {
		line("ended", "%s", ending[stop])
	}
	for _, note := range append(r.Notes, notes...) {
		line("note", "%s", note)
	}
}

var ending = map[engine.Stop]string{
	engine.StopLimit:       "after as many tokens as were asked for",
	engine.StopEnd:         "where the model ended its answer",
	engine.StopContext:     "at the end of the context",
	engine.StopInterrupted: "interrupted",
}

func rate(p engine.Phase) string {
	unit := "tokens"
	if p.Tokens == 1 {
		unit = "token"
	}
	return fmt.Sprintf("%d %s in %s, %.2f tok/s", p.Tokens, unit, seconds(p.Elapsed), p.TokensPerSecond())
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func share(part, whole time.Duration) float64 {
	if whole <= 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
