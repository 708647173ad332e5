package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"

	"github.com/bmoe/bmoe/core/engine"
	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/core/params"
	"github.com/bmoe/bmoe/core/plan"
	"github.com/bmoe/bmoe/core/probe"
)

// abilities is what core/engine does of what a plan may ask for.
var abilities = plan.Abilities{LocksCache: true}

// unable are the flags about what it does not do.
var unable = []string{"device", "n-gpu-layers", "device-split", "override-tensor", "prefill-device"}

// able refuses a flag that would silently do nothing.
func able(set *params.Set) error {
	for _, name := range unable {
		p, _ := params.Lookup(name)
		if set.Pinned(name) && set.Text(name) != p.Default && !(p.Kind == params.Bool && !set.Bool(name)) {
			return wrong("%s %s: this version computes on the host alone", p.Flag(), set.Text(name))
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

// ground is what a plan is made on: this machine, or one that was saved.
func (p *program) ground(ctx context.Context, set *params.Set, m *model.Profile) (probe.Found, error) {
	if !set.Pinned("machine") {
		return p.here(ctx, set, m)
	}
	known, err := machine.Load(set.String("machine"))
	if err != nil {
		return probe.Found{}, inputError{err}
	}
	return p.lookAt(ctx, set, m, known)
}

// here is this machine, looked at once: a machine that is saved is the one that was planned for. m is nil where nothing
// is planned.
func (p *program) here(ctx context.Context, set *params.Set, m *model.Profile) (probe.Found, error) {
	if p.found == nil {
		found, err := p.lookAt(ctx, set, m, nil)
		if err != nil {
			return probe.Found{}, err
		}
		p.found = &found
	}
	return *p.found, nil
}

// lookAt makes the one look of a front-end: what a person set says how far it goes.
func (p *program) lookAt(ctx context.Context, set *params.Set, m *model.Profile, known *machine.Profile) (probe.Found, error) {
	bar := newBar(p.err, p.bars)
	defer bar.close()
	r := probe.Request{
		Model: m, Known: known,
		Direct: set.Bool("odirect"), Measure: set.Bool("probe-io"), Hold: set.Bool("probe-mem"),
		Memory: max(set.Int("memory"), 0), Threads: int(max(set.Int("threads"), 0)),
		Tell: bar.step,
	}
	if m != nil && !set.Pinned("model-profile") {
		r.Path = set.String("model")
		r.Session = opening(set, m)
	}
	found, err := p.look(ctx, set, r)
	if ctx.Err() != nil {
		return probe.Found{}, ctx.Err()
	}
	if err != nil {
		slog.Warn("what this process may hold is not known", "error", err)
	}
	return found, nil
}

// opening is how a run that is planned would open the model, before the plan narrows its graphs.
func opening(set *params.Set, m *model.Profile) probe.Session {
	context := plan.Context(set.Int("ctx-size"), m.Context, plan.DefaultPolicy())
	width := context
	if n := int(set.Int("ubatch")); n > 0 {
		width = min(n, context)
	}
	return probe.Session{
		Context: context, Ubatch: width,
		TypeK: set.String("cache-type-k"), TypeV: set.String("cache-type-v"), FlashAttn: set.String("flash-attn"),
		ExpertsUsed: int(max(set.Int("n-expert-used"), 0)),
	}
}

// plan makes the plan for a model, and says what it was made on.
func (p *program) plan(ctx context.Context, set *params.Set, m *model.Profile) (plan.Plan, probe.Found, error) {
	on, err := p.ground(ctx, set, m)
	if err != nil {
		return plan.Plan{}, on, err
	}
	made := plan.Make(plan.Input{
		Machine: on.Machine, Placement: on.Placement, Model: m, History: p.credit(set, m), Params: set, Policy: plan.DefaultPolicy(), Session: p.can,
	})
	return made, on, nil
}

// planOnly prints the plan and what reproduces it, and loads nothing.
func (p *program) planOnly(ctx context.Context, set *params.Set) error {
	m, err := p.subject(set)
	if err != nil {
		return err
	}
	made, on, err := p.plan(ctx, set, m)
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
			Line      string         `json:"line"`
			Placement plan.Placement `json:"placement"` // that it was made on
			Look      []probe.Step   `json:"look"`      // at the machine, in order
		}{made, line, on.Placement, on.Steps}))
	}
	if err := made.WritePage(p.out, p.style(set, p.screen)); err != nil {
		return written(err)
	}
	if set.Bool("plan-explain") && len(on.Steps) > 0 {
		if _, err := fmt.Fprintf(p.out, "\nLooked at\n%s", stepLines(on.Steps)); err != nil {
			return written(err)
		}
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
	planned := set.Bool("probe") && set.Pinned("model") || set.Bool("auto") || set.Bool("plan-only") || set.Bool("plan-json")
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
		if err := p.saveMachine(found.Machine, set.String("save-machine")); err != nil {
			return err
		}
	}
	if set.Pinned("save-model") {
		if err := m.Save(set.String("save-model")); err != nil {
			return wrong("%s: %w", params.Flag("save-model"), err)
		}
	}
	return nil
}

// saveMachine writes a profile to a file, or to standard output for "-".
func (p *program) saveMachine(m machine.Profile, path string) error {
	if path == "-" {
		return written(m.Encode(p.out))
	}
	if err := m.Save(path); err != nil {
		return wrong("%s: %w", params.Flag("save-machine"), err)
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
