package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/bmoe/bmoe/core/engine"
	"github.com/bmoe/bmoe/core/history"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/core/params"
	"github.com/bmoe/bmoe/core/plan"
	"github.com/bmoe/bmoe/core/probe"
)

// What the program ends with.
const (
	exitDone        = 0
	exitFailed      = 1
	exitInput       = 2
	exitInterrupted = 130
)

// session is engine.Session, as far as it is used here.
type session interface {
	Generate(ctx context.Context, r engine.Request, each func(engine.Token) error) (engine.Result, error)
	Report() engine.Report
	Close() error
}

// program is all that the command touches outside itself.
type program struct {
	env      func(name string) (string, bool)
	in       io.Reader
	out, err io.Writer
	screen   bool // out is a terminal
	bars     bool // err is a terminal
	log      func(*slog.Logger)
	exit     func(code int) // at once, whatever is under way
	profile  func(path string) (*model.Profile, error)
	look     func(ctx context.Context, set *params.Set, r probe.Request) (probe.Found, error)
	found    *probe.Found // of this machine, once it was looked at
	history  history.Log
	can      plan.Abilities
	open     func(context.Context, engine.Config) (session, error)
	natives  natives
}

// inputError is a mistake of the person's: the program ends with exitInput.
type inputError struct{ error }

func (e inputError) Unwrap() error { return e.error }

// wrong makes an inputError.
func wrong(format string, args ...any) error { return inputError{fmt.Errorf(format, args...)} }

// errInterrupted ends the program with exitInterrupted and says nothing more.
var errInterrupted = errors.New("interrupted")

// main runs the command line and returns the exit code.
func (p *program) main(ctx context.Context, args []string) int {
	err := p.command().execute(ctx, args)
	var input inputError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		p.say("interrupted")
		return exitInterrupted
	case errors.As(err, &input), errors.Is(err, engine.ErrInput):
		p.fail(err)
		return exitInput
	}
	p.fail(err)
	return exitFailed
}

// say prints a line for the person.
func (p *program) say(format string, args ...any) { fmt.Fprintf(p.err, format+"\n", args...) }

// fail prints an error as one line.
func (p *program) fail(err error) {
	p.say("bmoe-cli: %s", strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; "))
}

type command struct{ *cobra.Command }

func (c command) execute(ctx context.Context, args []string) error {
	c.SetArgs(params.Normalize(args))
	return c.ExecuteContext(ctx)
}

// command is the command line, from the table of parameters.
func (p *program) command() command {
	set := params.New()
	c := &cobra.Command{
		Use:               "bmoe-cli",
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return inputError{params.Stray(args[0])}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			if err := set.Finish(p.env); err != nil {
				return inputError{err}
			}
			return p.run(c.Context(), set)
		},
	}
	set.Register(c.Flags())
	suggest(c)
	c.SetOut(p.out)
	c.SetErr(p.err)
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return inputError{params.Explain(err)} })
	c.SetHelpFunc(func(*cobra.Command, []string) {
		if err := help(p.out); err != nil {
			p.fail(err)
		}
	})
	return command{c}
}

// run does what the set asks for.
func (p *program) run(ctx context.Context, set *params.Set) error {
	p.log(slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{Level: level(set)})))
	switch {
	case set.Bool("version"):
		return p.version(set.Bool("verbose"))
	case set.Bool("manual"):
		return manual(p.out)
	case set.Pinned("completion"):
		return complete(p.command().Command, p.out, set.String("completion"))
	case set.Bool("list-devices"):
		return p.listDevices(ctx, set)
	}
	if set.Bool("history") {
		return p.showHistory()
	}
	if err := able(set); err != nil {
		return err
	}
	if err := p.save(ctx, set); err != nil {
		return err
	}
	switch {
	case set.Bool("probe"):
		return p.showMachine(ctx, set)
	case set.Bool("plan-only"), set.Bool("plan-json"):
		return p.planOnly(ctx, set)
	case saves(set) && !(set.Bool("auto") && prompted(set)):
		return nil
	}
	return p.answer(ctx, set)
}

// saves says whether a profile was asked for. It is written in place of a run, unless one is planned and has a prompt: then it
// is what the run was planned on.
func saves(set *params.Set) bool { return set.Pinned("save-machine") || set.Pinned("save-model") }

func prompted(set *params.Set) bool { return set.Pinned("prompt") || set.Pinned("file") }

// step is what a run is at, for the log. It may be told from any goroutine.
type step struct{ last atomic.Value }

func (s *step) is(name string) {
	if s.last.Swap(name) != name {
		slog.Debug("the run goes on", "step", name)
	}
}

// level is what to log.
func level(set *params.Set) slog.Level {
	if set.Bool("verbose") {
		return slog.LevelDebug
	}
	return map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	}[set.String("log-level")]
}

// answer is a run: it plans if asked to, opens the model, generates, and reports.
func (p *program) answer(ctx context.Context, set *params.Set) (err error) {
	if !set.Pinned("model") {
		return wrong("which model? Give its file with -m FILE; %s lists all flags", params.Flag("help"))
	}
	prompt, err := p.prompt(ctx, set)
	if err != nil {
		return err
	}
	table, err := openTable(set.String("csv"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, table.close()) }()

	m, err := p.subject(set)
	if err != nil {
		return err
	}
	page := p.style(set, p.bars)
	var made plan.Plan
	var decisions []string
	looked := ""
	if set.Bool("auto") {
		var on probe.Found
		if made, on, err = p.plan(ctx, set, m); err != nil {
			return err
		}
		for _, d := range made.Decisions {
			decisions = append(decisions, d.Line(page.Full))
		}
		looked = stepLines(on.Steps)
		set = made.Params
	}
	if err := drawSeed(set); err != nil {
		return err
	}
	config := configure(set, m)
	mode := modeLine(config, m, decisions != nil)
	p.say("%s", mode)
	if err := p.showPlan(made, page, decisions); err != nil {
		return err
	}
	if page.Full && looked != "" {
		fmt.Fprintf(p.err, "looked at the machine\n%s", looked)
	}
	slog.Debug("the run again", "line", params.Line("bmoe-cli", set))

	bar := newBar(p.err, p.bars)
	var now step
	config.Progress = func(name string, fraction float64) {
		now.is(name)
		bar.step(name, fraction)
	}
	config.Fatal = func(said string) {
		bar.close()
		p.fail(errors.Join(fmt.Errorf("%s: llama.cpp can't go on with it: %s; is the file damaged, or made for another release?", config.Model, said), table.close()))
		p.exit(exitFailed)
	}
	s, err := p.open(ctx, config)
	bar.close()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := table.begin(version(), mode, decisions); err != nil {
		return err
	}

	now.is("prefill")
	text := p.printer(set.Bool("progress"))
	ask := request(set, prompt)
	reading := newBar(p.err, p.bars)
	ask.Progress = func(fraction float64) {
		reading.step("reading the prompt", fraction)
		if fraction >= 1 {
			reading.close()
		}
	}
	result, err := s.Generate(ctx, ask, func(t engine.Token) error {
		if err := text.token(t); err != nil {
			return err
		}
		return table.row(t)
	})
	reading.close()
	if !text.endsLine() { // also where both go to one place that is no terminal
		p.say("")
	}
	if errors.Is(err, engine.ErrInput) {
		return err // nothing was computed
	}
	report(p.err, s.Report(), result.Stop, notes(set, m))
	err = errors.Join(err, table.outcome(outcome(p.err, made.Prediction, s.Report())))
	p.remember(made, set, m, s.Report())
	if err != nil {
		return err
	}
	if result.Stop == engine.StopInterrupted {
		return errInterrupted
	}
	return nil
}
