package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/bmoe/bmoe/core/engine"
	"github.com/bmoe/bmoe/core/history"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/core/params"
	"github.com/bmoe/bmoe/core/plan"
)

// noHistory says whether a person wants none.
func noHistory(set *params.Set) bool { return set.Pinned("history") && !set.Bool("history") }

// credit is what this model's cache did here before. The facts of another machine have no history here.
func (p *program) credit(set *params.Set, m *model.Profile) plan.Credit {
	if noHistory(set) || set.Pinned("machine") {
		return plan.Credit{}
	}
	records, err := p.history.Records()
	if err != nil {
		slog.Debug("the history can't be read", "error", err)
		return plan.Credit{}
	}
	cache, rate, runs := history.HitRate(records, called(m), m.FileBytes(), usedByHand(set), m.ExpertBytes())
	locks := history.Granted(records)
	return plan.Credit{
		Runs: runs, CacheBytes: cache, HitRate: rate,
		LockRefused: locks.Refused, CacheLocked: locks.Cache, DenseLocked: locks.Dense,
	}
}

// called is what a model is called in the history.
func called(m *model.Profile) string { return cmp.Or(m.Name, m.Architecture) }

// usedByHand is the routing width a person set, or 0.
func usedByHand(set *params.Set) int { return int(max(set.Int("n-expert-used"), 0)) }

// remember keeps what a plan predicted and what came of it. A history that can't be written is no failure of the run.
func (p *program) remember(made plan.Plan, set *params.Set, m *model.Profile, report engine.Report) {
	d := report.Decode
	if made.Params == nil || d.Tokens == 0 || d.Elapsed <= 0 || noHistory(set) {
		return
	}
	r := history.Record{
		When: time.Now().UTC().Truncate(time.Second), Model: called(m), Bytes: m.FileBytes(), Used: usedByHand(set), Machine: made.Machine, Tokens: d.Tokens,
		Predicted: made.Prediction.PerToken, Took: d.Elapsed.Seconds() / float64(d.Tokens), Credited: made.Prediction.HitRate,
		CacheLocked: report.CachePinned, CacheRefused: report.CachePinRefused, DenseLocked: report.DensePinned, DenseRefused: report.DensePinRefused,
	}
	if looked := d.Hits + d.Misses; looked > 0 {
		r.Cache, r.HitRate = made.Figures.Cache, float64(d.Hits)/float64(looked)
	}
	if err := p.history.Add(r); err != nil {
		slog.Debug("the history can't be written", "error", err)
	}
}

// showHistory prints the runs, latest last.
func (p *program) showHistory() error {
	records, err := p.history.Records()
	if err != nil {
		return fmt.Errorf("read the history: %w", err)
	}
	if len(records) == 0 {
		_, err := fmt.Fprintf(p.out, "no run was planned here yet; %s plans one\n", params.Flag("auto"))
		return written(err)
	}
	const line = "%-16s  %-24s %6s %9s %9s %9s\n"
	if _, err := fmt.Fprintf(p.out, line+line, "", "", "", "cache", "ms/token", "hits",
		"when", "model", "tokens", "MiB", "plan took", "plan took"); err != nil {
		return written(err)
	}
	for _, r := range records {
		predicted, hits := "-", "-"
		if r.Predicted > 0 {
			predicted = fmt.Sprintf("%.0f", r.Predicted*1e3)
		}
		if r.Cache > 0 {
			hits = fmt.Sprintf("%.0f%% %.0f%%", 100*r.Credited, 100*r.HitRate)
		}
		name := []rune(r.Model)
		if _, err := fmt.Fprintf(p.out, line, r.When.Local().Format("2006-01-02 15:04"), string(name[:min(24, len(name))]), fmt.Sprint(r.Tokens),
			fmt.Sprint(r.Cache>>20), fmt.Sprintf("%s %.0f", predicted, r.Took*1e3), hits); err != nil {
			return written(err)
		}
	}
	return nil
}
