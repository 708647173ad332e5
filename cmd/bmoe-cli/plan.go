package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"

	"github.com/bmoe/bmoe/core/engine"
	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/core/params"
	"github.com/bmoe/bmoe/core/plan"
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
func (p *program) ground(set *params.Set) (machine.Profile, error) {
	if set.Pinned("machine") {
		m, err := machine.Load(set.String("machine"))
		if err != nil {
			return machine.Profile{}, inputError{err}
		}
		return *m, nil
	}
	m, err := p.machine()
	if err != nil {
		slog.Warn("what this process may hold is not known", "error", err)
	}
	return m, nil
}

// plan makes the plan for a model.
func (p *program) plan(set *params.Set, m *model.Profile) (plan.Plan, error) {
	on, err := p.ground(set)
	if err != nil {
		return plan.Plan{}, err
	}
	return plan.Make(plan.Input{Machine: on, Model: m, History: p.credit(set, m), Params: set, Policy: plan.DefaultPolicy(), Session: p.can}), nil
}

// planOnly prints the plan and what reproduces it, and loads nothing.
func (p *program) planOnly(set *params.Set) error {
	m, err := p.subject(set)
	if err != nil {
		return err
	}
	made, err := p.plan(set, m)
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

// save writes the profiles that were asked for.
func (p *program) save(set *params.Set) error {
	if set.Pinned("save-machine") {
		m, err := p.machine()
		if err != nil {
			slog.Warn("what this process may hold is not known", "error", err)
		}
		if err := m.Save(set.String("save-machine")); err != nil {
			return wrong("%s: %w", params.Flag("save-machine"), err)
		}
	}
	if set.Pinned("save-model") {
		m, err := p.subject(set)
		if err != nil {
			return err
		}
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
