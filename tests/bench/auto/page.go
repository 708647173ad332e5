package main

import (
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmoe/bmoe/platform/cpu"
)

// What is asked of --auto.
const (
	leastOfBest = 0.9 // of the best decode rate found by hand
	mostOff     = 0.3 // of a prediction from what was measured
)

// check is one target in a group of one size.
type check struct {
	what, measured string
	met            bool
}

// median of what value gives over a setting's runs; NaN where there is none.
func (c *confined) median(name string, value func(outcome) float64) float64 {
	var values []float64
	for _, o := range c.rounds[name] {
		values = append(values, value(o))
	}
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

func rate(o outcome) float64 { return 1 / o.perToken }

// best is the fastest setting by hand, of those that hold what the plan may or of those that hold more.
func (c *confined) best(beyond bool) (name string, perSecond float64) {
	for _, s := range c.settings {
		if s.name == "auto" || s.beyond != beyond {
			continue
		}
		if r := c.median(s.name, rate); r > perSecond {
			name, perSecond = s.name, r
		}
	}
	return name, perSecond
}

// checks are the five targets.
func (c *confined) checks() []check {
	var list []check
	add := func(met bool, what, format string, args ...any) {
		list = append(list, check{what, fmt.Sprintf(format, args...), met})
	}
	var killed int
	var held int64
	for _, name := range []string{"first", "auto"} {
		for _, o := range c.rounds[name] {
			held = max(held, o.held)
			if o.killed {
				killed++
			}
		}
	}
	add(killed == 0, "no process ended for want of memory", "%d", killed)
	ledger, _ := c.plan.Ledger.Total()
	add(held > 0 && held <= ledger+slack, "held, at most the ledger and 150 MiB", "%s of %s", mib(held), mib(ledger+slack))

	auto := c.median("auto", rate)
	name, best := c.best(false)
	add(auto >= leastOfBest*best, "decode, of the best by hand at least 0.9", "%.3f: %.2f tok/s against %.2f with %q", auto/best, auto, best, name)

	first := c.rounds["first"][0]
	corrected := c.corrected.Prediction
	off := corrected.PerToken / first.perToken
	add(corrected.Known && math.Abs(1-off) <= mostOff, "first prediction, with the hits that were measured, within 30%",
		"%.2f: %.1f ms for %.1f (%.1f ms as predicted; %.0f%% hits credited, %.0f%% measured)", off, 1e3*corrected.PerToken, 1e3*first.perToken,
		1e3*c.plan.Prediction.PerToken, 100*c.plan.Prediction.HitRate, 100*first.hits)
	again := c.median("auto", func(o outcome) float64 { return o.predicted / o.perToken })
	add(math.Abs(1-again) <= mostOff, "prediction from the second run on, within 30%", "%.2f", again)
	return list
}

// report is the page, and how many targets were missed.
func (l *lab) report() (string, int) {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	missed := 0
	line("# What --auto reaches\n")
	line("Written by `go tool mage bench:auto`; do not edit. `bmoe-cli -m MODEL --auto` in memory control groups, against the best that was found")
	line("by setting one knob at a time by hand, all in the same run. Figures are medians over %d rounds of %d tokens after %d; a round takes every", l.rounds, l.tokens, warmTokens)
	line("setting once, in a process of its own that starts with the model out of the file cache.\n")
	line("Model: %s, %s of experts, %d of %d used in a layer. Machine: %d cores. %s. %s.\n", filepath.Base(l.path), mib(l.profile.ExpertBytes()),
		l.profile.ExpertUsed, l.profile.ExpertCount, cpu.Physical(), revision(), l.start.Format("2006-01-02"))
	line("| group | target | measured | |\n|---|---|---|---|")
	for _, c := range l.found {
		for _, k := range c.checks() {
			verdict := "met"
			if !k.met {
				verdict = "**missed**"
				missed++
			}
			line("| %s | %s | %s | %s |", mib(c.size), k.what, strings.ReplaceAll(k.measured, "|", "/"), verdict)
		}
	}
	line("\n## Every setting\n")
	line("Tokens per second, median (least..most); those that hold more than the plan may are marked with +.\n")
	for _, c := range l.found {
		line("%s: the plan is %s with a cache of %s; its ledger is %s.\n", mib(c.size), c.plan.Outcome, mib(c.plan.Figures.Cache), mib(c.plan.Figures.HeldTotal))
		line("| setting | tok/s | hits | held |\n|---|---:|---:|---:|")
		for _, s := range c.settings {
			mark := ""
			if s.beyond {
				mark = " +"
			}
			if len(c.rounds[s.name]) == 0 {
				line("| %s%s | did not run | | |", s.name, mark)
				continue
			}
			var all []float64
			for _, o := range c.rounds[s.name] {
				all = append(all, rate(o))
			}
			line("| %s%s | %.2f (%.2f..%.2f) | %.1f%% | %.0f MiB |", s.name, mark, c.median(s.name, rate), slices.Min(all), slices.Max(all),
				100*c.median(s.name, func(o outcome) float64 { return o.hits }), c.median(s.name, func(o outcome) float64 { return float64(o.held) / (1 << 20) }))
		}
		if name, beyond := c.best(true); name != "" {
			line("\nThe best beyond what the plan may hold: %.2f tok/s with %q.", beyond, name)
		}
		for _, e := range c.errs {
			line("\n- %s", e)
		}
		line("")
	}
	line("## Again\n\n```sh\ngo tool mage bench:auto                              # all of it; the control groups take root\ngo tool mage bench:auto -memory=4096 -rounds=1       # a look at one size\n```\n")
	line("The machine should do nothing else.")
	return b.String(), missed
}

func revision() string {
	commit, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "Outside of a git checkout"
	}
	return "Commit " + strings.TrimSpace(string(commit))
}
