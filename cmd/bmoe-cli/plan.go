package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"github.com/bmoe/bmoe/core/engine"
	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/core/params"
	"github.com/bmoe/bmoe/core/plan"
	"github.com/bmoe/bmoe/core/probe"
)

// abilities is what core/engine does of what a plan may ask for.
var abilities = plan.Abilities{}

// unable are the flags about what it does not do.
var unable = []string{"cache-pin", "cache-pin-fit", "device", "n-gpu-layers", "device-split", "override-tensor", "prefill-device"}

// able refuses a flag that would silently do nothing.
func able(set *params.Set) error {
	for _, name := range unable {
		p, _ := params.Lookup(name)
		if set.Pinned(name) && set.Text(name) != p.Default && !(p.Kind == params.Bool && !set.Bool(name)) {
			return wrong("%s %s: this version computes on the host alone and locks no cache", p.Flag(), set.Text(name))
		}
	}
	return nil
}

// subject is the model of a run or of a plan: from its own file, or from a profile that was saved.
func (p *program) subject(set *params.Set) (*model.Profile, error) {
	read, path := p.profile, set.String("model")
	if set.Pinned("model-profile") {
		read, path = model.Load, set.String("model-profile")
	} else if !set.Pinned("model") {
		return nil, wrong("which model? Give its file with -m FILE; %s lists all flags", params.Flag("help"))
	}
	m, err := read(path)
	if err != nil {
		return nil, inputError{err}
	}
	return m, check(set, m)
}

// ground is the machine a plan is made for: this one, or one that was saved.
func (p *program) ground(ctx context.Context, set *params.Set, m *model.Profile) (machine.Profile, error) {
	if set.Pinned("machine") {
		m, err := machine.Load(set.String("machine"))
		if err != nil {
			return machine.Profile{}, inputError{err}
		}
		return *m, nil
	}
	return p.here(ctx, set, m)
}

// here is this machine, looked at once: a machine that is saved is the one that was planned for. m is nil where nothing
// is planned.
func (p *program) here(ctx context.Context, set *params.Set, m *model.Profile) (machine.Profile, error) {
	if p.found != nil {
		return *p.found, nil
	}
	found, err := p.machine()
	if err != nil {
		slog.Warn("what this process may hold is not known", "error", err)
	}
	if found.Cores.ReadRate, err = p.compute(ctx, set, m, found); err != nil {
		return machine.Profile{}, err
	}
	if found.Storage, err = p.drive(ctx, set, m); err != nil {
		return machine.Profile{}, err
	}
	p.found = &found
	return found, nil
}

// compute measures the host's matmul, before the drive is read: reading keeps the system busy for a while.
func (p *program) compute(ctx context.Context, set *params.Set, m *model.Profile, on machine.Profile) (machine.Fact[float64], error) {
	switch {
	case m == nil:
		return machine.Unknown[float64]("no plan asked for it"), nil
	case !set.Bool("probe-io"):
		return machine.Unknown[float64]("--no-probe-io"), nil
	}
	available := on.Memory.Available.Or(0)
	if limit := set.Int("memory"); set.Pinned("memory") && limit > 0 {
		available = min(available, limit)
	}
	threads := on.Cores.Physical.Or(1)
	if n := set.Int("threads"); set.Pinned("threads") && n > 0 {
		threads = int(n)
	}
	bar := newBar(p.err, p.bars)
	defer bar.close()
	bar.step("measuring the processor", 0)
	return p.rate(ctx, m, threads, available)
}

// drive measures the drive that the model's experts are on, unless it is not to be touched or there are none here.
func (p *program) drive(ctx context.Context, set *params.Set, m *model.Profile) (machine.Storage, error) {
	switch {
	case m == nil:
		return probe.Unread("no plan asked for it"), nil
	case !set.Bool("probe-io"):
		return probe.Unread("--no-probe-io"), nil
	case set.Pinned("model-profile"):
		return probe.Unread("the model is not here"), nil
	case m.ExpertShard() < 0:
		return probe.Unread("the model has no experts"), nil
	}
	shard := filepath.Join(filepath.Dir(set.String("model")), m.Shards[m.ExpertShard()].Name)
	bar := newBar(p.err, p.bars)
	defer bar.close()
	bar.step("measuring the drive", 0)
	return p.storage(ctx, shard, m, set.Bool("odirect"), func(fraction float64) { bar.step("measuring the drive", fraction) })
}

// plan makes the plan for a model.
func (p *program) plan(ctx context.Context, set *params.Set, m *model.Profile) (plan.Plan, error) {
	on, err := p.ground(ctx, set, m)
	if err != nil {
		return plan.Plan{}, err
	}
	return plan.Make(plan.Input{Machine: on, Model: m, History: p.credit(set, m), Params: set, Policy: plan.DefaultPolicy(), Session: p.can}), nil
}

// planOnly prints the plan and what reproduces it, and loads nothing.
func (p *program) planOnly(ctx context.Context, set *params.Set) error {
	m, err := p.subject(set)
	if err != nil {
		return err
	}
	made, err := p.plan(ctx, set, m)
	if err != nil {
		return err
	}
	line := params.Line("bmoe-cli", made.Params)
	if set.Bool("plan-json") {
		e := json.NewEncoder(p.out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return written(e.Encode(struct {
			plan.Plan
			Line string `json:"line"`
		}{made, line}))
	}
	if err := made.WritePage(p.out, p.style(set, p.screen)); err != nil {
		return written(err)
	}
	_, err = fmt.Fprintf(p.out, "\nThe same by hand:\n  %s\n", line)
	return written(err)
}

// showPlan prints a plan before its run: as a page on a terminal, else a line for each decision.
func (p *program) showPlan(made plan.Plan, style plan.Style, decisions []string) error {
	if p.bars && len(decisions) > 0 {
		return made.WritePage(p.err, style)
	}
	for _, line := range decisions {
		p.say("%s", line)
	}
	return nil
}

// style is how a plan is laid out on a terminal, or in what is none.
func (p *program) style(set *params.Set, terminal bool) plan.Style {
	unwanted, _ := p.env("NO_COLOR")
	return plan.Style{Color: terminal && unwanted == "", Full: set.Bool("plan-explain")}
}

func written(err error) error {
	if err != nil {
		return fmt.Errorf("write to standard output: %w", err)
	}
	return nil
}

// save writes the profiles that were asked for. Of a run that is planned, the machine includes what the plan measures.
func (p *program) save(ctx context.Context, set *params.Set) error {
	var m *model.Profile
	planned := set.Bool("auto") || set.Bool("plan-only") || set.Bool("plan-json")
	if set.Pinned("save-model") || set.Pinned("save-machine") && planned {
		var err error
		if m, err = p.subject(set); err != nil {
			return err
		}
	}
	if set.Pinned("save-machine") {
		measured := m
		if !planned || set.Pinned("machine") {
			measured = nil
		}
		found, err := p.here(ctx, set, measured)
		if err != nil {
			return err
		}
		if err := found.Save(set.String("save-machine")); err != nil {
			return wrong("%s: %w", params.Flag("save-machine"), err)
		}
	}
	if set.Pinned("save-model") {
		if err := m.Save(set.String("save-model")); err != nil {
			return wrong("%s: %w", params.Flag("save-model"), err)
		}
	}
	return nil
}

// outcome holds what a plan predicted against what came of it.
func outcome(w io.Writer, predicted plan.Prediction, r engine.Report) string {
	d := r.Decode
	if d.Tokens == 0 || !predicted.Known {
		return ""
	}
	text := fmt.Sprintf("predicted %.1f ms per token, took %.1f", predicted.PerToken*1e3, d.Elapsed.Seconds()*1e3/float64(d.Tokens))
	if d.Hits+d.Misses > 0 {
		text += fmt.Sprintf("; %.1f%% hits credited, %.1f%% measured", 100*predicted.HitRate, 100*float64(d.Hits)/float64(d.Hits+d.Misses))
	}
	fmt.Fprintf(w, "%-9s%s\n", "plan", text)
	return text
}
