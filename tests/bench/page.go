package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bmoe/bmoe/platform/cpu"
	"github.com/bmoe/bmoe/platform/memory"
)

// result is a check made.
type result struct {
	check
	values figure
	err    error // why there are no values
}

// results makes the checks that are asked for.
func (l *lab) results() []result {
	var list []result
	for _, c := range l.checks() {
		if !l.wants(c.letter) {
			continue
		}
		r := result{check: c, values: l.found.median(c.value, c.needs...)}
		for _, name := range c.needs {
			if err := l.errs[name]; err != nil && r.err == nil {
				r.err = fmt.Errorf("%s: %w", l.named(name).what, err)
			}
		}
		list = append(list, r)
	}
	return list
}

// met says whether the target is met.
func (r result) met() bool {
	if r.err != nil || len(r.values) == 0 {
		return false
	}
	if r.most {
		return r.values.middle() <= r.target
	}
	return r.values.middle() >= r.target
}

// want is a target or an aim for people.
func (r result) want(value float64) string {
	switch {
	case value == 0:
		return ""
	case r.most:
		return fmt.Sprintf("≤ %.2f", value)
	}
	return fmt.Sprintf("≥ %.2f", value)
}

func (r result) measured() string {
	if len(r.values) == 0 {
		return "not measured"
	}
	return r.values.spread("%.3f")
}

func (r result) verdict() string {
	switch {
	case r.err != nil || len(r.values) == 0:
		return "not measured"
	case r.target == 0:
		return ""
	case r.met():
		return "met"
	}
	return "**missed**"
}

// page is the page of results.
func (l *lab) page() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	row := func(cells ...string) { line("| %s |", strings.Join(cells, " | ")) }
	p := l.bench.profile

	line("# Benchmarks\n")
	line("Written by `go tool mage bench`; do not edit. Each figure is the median over %d rounds, with the least and the most. A round", l.rounds)
	line("takes every measurement once, each in a process of its own, and a ratio is taken within its round.\n")
	row("the machine", "")
	row("---", "---")
	for _, f := range l.machine() {
		row(f[0], f[1])
	}
	line("\n## Targets\n")
	row("", "what", "target", "aim", "measured", "", "made of")
	row("---", "---", "---", "---", "---", "---", "---")
	for _, r := range l.results() {
		detail := ""
		if r.err != nil {
			detail = strings.ReplaceAll(r.err.Error(), "|", "/")
		} else if r.detail != nil {
			detail = r.detail(l.found)
		}
		row(r.letter, r.what, r.want(r.target), r.want(r.aim), r.measured(), r.verdict(), detail)
	}

	line("\n## Where a token's time goes\n")
	line("Milliseconds a token: standing still for reads, in expert matmuls of ours, and the rest (attention, dense weights, bookkeeping;")
	line("in plain runs everything). A prefill counts the last pass.\n")
	row("run", "tok/s", "waiting", "experts", "the rest", "read, MiB/token", "hits", "prefill, s", "held, MiB")
	row("---", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:")
	for _, m := range l.list {
		of := func(format string, value func(o *outcome) float64) string {
			return l.found.median(func(o []*outcome) float64 { return value(o[0]) }, m.name).show(format)
		}
		if m.job.Generate == nil || m.job.Generate.Tokens == 0 || len(l.found[m.name]) == 0 {
			continue
		}
		per := func(value func(s stretch) float64) func(o *outcome) float64 {
			return func(o *outcome) float64 { return value(o.Decode) / float64(o.Decode.Tokens) }
		}
		cells := []string{m.what,
			l.found.median(func(o []*outcome) float64 { return o[0].Decode.perSecond() }, m.name).spread("%.2f"), "", "",
			of("%.1f", per(func(s stretch) float64 { return 1e3 * (s.Elapsed - s.Wait - s.Compute).Seconds() })), "", ""}
		if m.job.Generate.Stream {
			cells[2] = of("%.1f", per(func(s stretch) float64 { return 1e3 * s.Wait.Seconds() }))
			cells[3] = of("%.1f", per(func(s stretch) float64 { return 1e3 * s.Compute.Seconds() }))
			cells[5] = of("%.1f", per(func(s stretch) float64 { return float64(s.ReadBytes) / (1 << 20) }))
			cells[6] = of("%.0f%%", func(o *outcome) float64 { return 100 * (1 - o.Decode.missed()) })
		}
		row(append(cells, of("%.2f", func(o *outcome) float64 { return o.Prefill.Elapsed.Seconds() }),
			of("%.0f", func(o *outcome) float64 { return float64(o.Report.PeakHeld) / (1 << 20) }))...)
	}
	if rates := l.driveRates(); rates != "" {
		line("\nThe drive, at random slices of %d KiB: %s. A token asks for %s of experts; all of them are %s.",
			p.SliceSize()>>10, rates, mib(p.TokenCycle(0)), mib(p.ExpertBytes()))
	}

	line("\n## How it is measured\n")
	line("The model is %s (%s, %d experts a layer of which %d are used, %s). Text is sampled at a temperature of 1 with one seed, after a",
		filepath.Base(l.bench.path), p.Architecture, p.ExpertCount, p.ExpertUsed, mib(p.FileBytes()))
	line("prompt of %d tokens; %d tokens warm up, and %d are measured. Plain llama.cpp is the same library with the same threads and", promptTokens, warmTokens, l.tokens)
	line("settings, the model mapped.\n")
	line("- **A**: plain llama.cpp with the whole file in the page cache, then streamed with a cache for every expert, which a first pass over")
	line("  the same text fills.")
	line("- **B**: in a memory control group of %s, the file dropped from the page cache before. Plain llama.cpp makes %d tokens after %d, since", mib(l.memory), mappedTokens, mappedPrompt+mappedWarm)
	line("  each takes seconds. What drive and processor allow is the longer of the time to read the missed slices at the drive's best rate")
	line("  and the time of a token with everything cached, both of the same round.")
	line("- **C**: with a cache size at which reading takes about as long as computing, found by halving before the first round.")
	line("- **D**: the prompt of B, its experts read once at the drive's best rate, or computed with everything cached.")
	line("- **E**: what the system counts as read from storage for the process until its first graph, the file dropped before; the streamed")
	line("  run takes the memory of B. Four files: a model of 2 GiB in shards.")
	line("- **F**: anonymous and locked memory, sampled twenty times a second.\n")
	line("## Again\n")
	line("```sh\ngo tool mage bench                          # all of it; the model takes 8 GB of disk, the control group root\ngo tool mage bench -only=A,C -rounds=1      # a look at some\ngo tool mage bench -model=MODEL.gguf        # another model\n```\n")
	line("The machine should do nothing else. Without `-strict` a missed target is no failure.")
	return b.String()
}

// machine is what the page says of where it was measured.
func (l *lab) machine() [][2]string {
	facts := [][2]string{{"processor", fmt.Sprintf("%s, %d cores", processor(), cpu.Physical())}}
	if m, err := memory.Read(); err == nil {
		facts = append(facts, [2]string{"memory", mib(m.Total)})
	}
	if rates := l.found.median(func(o []*outcome) float64 { return best(o[0].Rates) / 1e6 }, "drive"); len(rates) > 0 {
		facts = append(facts, [2]string{"drive", rates.spread("%.0f") + " MB/s at best"})
	}
	for _, m := range l.list {
		for _, o := range l.found[m.name] {
			if o != nil && o.Report.Libraries != "" {
				return append(facts, [2]string{"llama.cpp", o.Report.Libraries}, [2]string{"bmoe", revision()}, [2]string{"date", l.start.Format("2006-01-02")})
			}
		}
	}
	return append(facts, [2]string{"bmoe", revision()}, [2]string{"date", l.start.Format("2006-01-02")})
}

// revision is the commit that is checked out where this runs.
func revision() string {
	commit, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "outside of a git checkout"
	}
	said := "commit " + strings.TrimSpace(string(commit))
	if changes, err := exec.Command("git", "status", "--porcelain").Output(); err != nil || len(changes) > 0 {
		said += " and changes"
	}
	return said
}

// driveRates are the medians by lanes.
func (l *lab) driveRates() string {
	var parts []string
	for i, n := range l.named("drive").job.Drive.Lanes {
		if v := l.found.median(func(o []*outcome) float64 { return o[0].Rates[i].PerSecond / 1e6 }, "drive"); len(v) > 0 {
			parts = append(parts, fmt.Sprintf("%s MB/s with %d at a time", v.show("%.0f"), n))
		}
	}
	return strings.Join(parts, ", ")
}
