package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bmoe/bmoe/ci/cgroup"
	"github.com/bmoe/bmoe/ci/console"
	"github.com/bmoe/bmoe/core/history"
	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/core/params"
	"github.com/bmoe/bmoe/core/plan"
	"github.com/bmoe/bmoe/platform/process"
	"github.com/bmoe/bmoe/platform/storage"
	"github.com/bmoe/bmoe/tests/synth"
)

const (
	warmTokens = 32
	patience   = 5 * time.Minute // that one run may take
	slack      = 150 << 20       // bytes that a run may hold beyond its plan's ledger
)

// lab runs bmoe-cli in control groups.
type lab struct {
	options
	program string
	path    string
	profile *model.Profile
	scratch string // history, tables and saved facts of the runs
	found   []*confined
	start   time.Time
}

// confined is what was measured in a group of one size.
type confined struct {
	size      int64
	plan      plan.Plan            // of the first run, made again from the facts that it saved
	corrected plan.Plan            // the same with the hit rate that was measured
	rounds    map[string][]outcome // by name of the setting; "auto" is --auto alone, from the second run on
	settings  []setting
	errs      []string
}

// setting is one way to run the model.
type setting struct {
	name   string
	args   []string
	beyond bool // holds more than the plan may: shown, and no target
}

// outcome is one run.
type outcome struct {
	perToken  float64 // seconds
	hits      float64 // share of one; 0 where nothing was looked up
	held      int64   // bytes, anonymous and locked, at most
	predicted float64 // seconds per token; 0: not predicted
	killed    bool
}

func newLab(ctx context.Context, o options) (*lab, error) {
	l := &lab{options: o, path: o.model, start: time.Now()}
	exe, err := process.Executable()
	if err != nil {
		return nil, err
	}
	l.program = filepath.Join(filepath.Dir(exe), "bmoe-cli"+filepath.Ext(exe))
	if l.path == "" {
		spec, err := synth.Named("bench-8g")
		if err != nil {
			return nil, err
		}
		if l.path, err = kept(ctx, filepath.Join(o.folder, "bench-8g.gguf"), spec); err != nil {
			return nil, err
		}
	}
	if l.profile, err = model.Read(l.path); err != nil {
		return nil, err
	}
	if l.profile.ExpertCount == 0 {
		return nil, fmt.Errorf("%s has no experts to stream", l.path)
	}
	if l.scratch, err = os.MkdirTemp("", "bmoe-bench-auto-"); err != nil {
		return nil, err
	}
	return l, os.WriteFile(l.file("prompt"), []byte(prompt), 0o600)
}

func (l *lab) close() { _ = os.RemoveAll(l.scratch) } // what stays in the system's folder for that is nobody's loss

func (l *lab) file(name string) string { return filepath.Join(l.scratch, name) }

// prompt is long enough to fill a cache.
var prompt = strings.Repeat("Ship 12 left the harbour with 37 barrels; on day 9 the wind turned and the captain wrote: \"53 left?\" ", 8)

// kept is the model's file, written unless an earlier run left it whole.
func kept(ctx context.Context, path string, spec synth.Spec) (string, error) {
	want, err := synth.Size(spec)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err == nil && info.Size() == want {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	bar := console.Start("writing "+filepath.Base(path)+", random weights", want, true)
	if _, err := synth.Write(ctx, path, spec, func(written, _ int64) { bar.Set(written) }); err != nil {
		bar.Failed()
		return "", err
	}
	bar.Done()
	return path, nil
}

// confine measures everything in a group of one size: a first run with --auto, and then round by round a further one and
// every setting by hand, each in a fresh process that starts with the file out of the file cache.
func (l *lab) confine(ctx context.Context, size int64) error {
	c := &confined{size: size, rounds: map[string][]outcome{}}
	l.found = append(l.found, c)
	history := l.file(fmt.Sprintf("history-%d", size>>20))
	facts := l.file(fmt.Sprintf("machine-%d.json", size>>20))
	first, err := l.play(ctx, c, history, "--auto", "--save-machine", facts)
	if err != nil {
		return fmt.Errorf("--auto with %s: %w", mib(size), err)
	}
	console.Say("%s, first run with --auto: %s", mib(size), first)
	c.rounds["first"] = append(c.rounds["first"], first)
	if err := l.planned(ctx, c, facts, first); err != nil {
		return err
	}
	c.settings = append([]setting{{name: "auto", args: []string{"--auto"}}}, byHand(c.plan)...)
	for round := range l.rounds {
		for _, s := range c.settings {
			o, err := l.play(ctx, c, history, s.args...)
			switch {
			case ctx.Err() != nil:
				return errors.New("interrupted")
			case err != nil && s.name == "auto":
				return fmt.Errorf("--auto with %s: %w", mib(size), err)
			case err != nil:
				console.Say("%s, round %d of %d, %s: %v", mib(size), round+1, l.rounds, s.name, err)
				c.errs = append(c.errs, s.name+": "+err.Error())
				continue
			}
			console.Say("%s, round %d of %d, %s: %s", mib(size), round+1, l.rounds, s.name, o)
			c.rounds[s.name] = append(c.rounds[s.name], o)
		}
	}
	return nil
}

// planned makes the plan of the first run again, from the facts that it saved and the placement projected for them, and once
// more with the hit rate it measured.
func (l *lab) planned(ctx context.Context, c *confined, facts string, first outcome) error {
	on, err := machine.Load(facts)
	if err != nil {
		return err
	}
	text, err := exec.CommandContext(ctx, l.program, "-m", l.path, "--plan-json", "--machine", facts).Output()
	if err != nil {
		return fmt.Errorf("plan again from %s: %w", facts, err)
	}
	var again struct{ Placement plan.Placement }
	if err := json.Unmarshal(text, &again); err != nil {
		return fmt.Errorf("plan again from %s: %w", facts, err)
	}
	set, err := params.Parse([]string{"-m", l.path, "--auto"}, func(string) (string, bool) { return "", false })
	if err != nil {
		return err
	}
	in := plan.Input{Machine: *on, Placement: again.Placement, Model: l.profile, Params: set, Policy: plan.DefaultPolicy(), Session: plan.Abilities{LocksCache: true}}
	c.plan = plan.Make(in)
	in.History = plan.Credit{Runs: 1, CacheBytes: c.plan.Figures.Cache, HitRate: first.hits}
	c.corrected = plan.Make(in)
	return nil
}

// byHand are the settings that are tried against the plan's: one knob at a time moved away from what it chose.
func byHand(made plan.Plan) []setting {
	base := made.Params
	line := func(changes map[string]string) []string {
		args := []string{}
		for _, p := range params.All() {
			value, changed := changes[p.Name]
			switch {
			case p.Scope != params.Run || p.Name == "model" || p.Name == "memory":
				continue
			case !changed:
				value = base.Text(p.Name)
				if value == p.Default {
					continue
				}
			}
			args = append(args, p.Flag()+"="+value)
		}
		return args
	}
	chosen := func(knob string) string { return base.Text(knob) }
	list := []setting{{name: "the plan by hand", args: line(nil)}}
	if made.Outcome != plan.Streams {
		return append(list, setting{name: "streamed", args: []string{"--moe-stream"}})
	}
	cache := made.Figures.Cache
	for _, share := range []struct {
		of     float64
		beyond bool
	}{{0.75, false}, {0.9, false}, {1.1, true}, {1.2, true}} {
		if cache == 0 {
			break
		}
		n := int64(float64(cache)*share.of) >> 20
		list = append(list, setting{fmt.Sprintf("cache of %d MiB", n), line(map[string]string{"cache-mb": strconv.FormatInt(n, 10)}), share.beyond})
	}
	for knob, values := range map[string][]string{"io-threads": {"1", "2", "4", "8"}, "dense-weights": {"anon", "pinned", "mmap"}, "overlap": {"on", "off"}} {
		for _, v := range values {
			if v != chosen(knob) {
				list = append(list, setting{name: knob + " " + v, args: line(map[string]string{knob: v})})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b setting) int { return cmp.Compare(a.name, b.name) })
	return list
}

// play is one run in the group.
func (l *lab) play(ctx context.Context, c *confined, state string, args ...string) (o outcome, err error) {
	if err := storage.DropCache(l.path); err != nil {
		return o, err
	}
	group, err := cgroup.New(cgroup.Root, fmt.Sprintf("bmoe-bench-auto-%d", os.Getpid()), c.size)
	if err != nil {
		return o, fmt.Errorf("no memory control group can be made: %w", err)
	}
	defer func() { err = errors.Join(err, group.Remove()) }()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	table := l.file("run.csv")
	args = append([]string{"-m", l.path, "-f", l.file("prompt"), "-n", strconv.Itoa(warmTokens + l.tokens + 1), "--ignore-eos", "--temp", "1", "--seed", "1", "--csv", table}, args...)
	cmd := group.Command(ctx, l.program, args...)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state, "LOCALAPPDATA="+state, "HOME="+state)
	var said bytes.Buffer
	cmd.Stderr = &said
	err = cmd.Run()
	o.killed = group.Ended() > 0
	switch {
	case ctx.Err() != nil:
		return o, fmt.Errorf("ended after %s", patience)
	case err != nil && o.killed:
		return o, errors.New("ended by the system for want of memory")
	case err != nil:
		return o, fmt.Errorf("%w: %s", err, lastLine(said.String()))
	}
	if err := o.read(table); err != nil {
		return o, err
	}
	if held := heldMiB.FindStringSubmatch(said.String()); held != nil {
		n, _ := strconv.ParseInt(held[1], 10, 64) // the pattern lets digits through
		o.held = n << 20
	}
	records, err := history.In(filepath.Join(state, "bmoe")).Records()
	if err == nil && len(records) > 0 && slices.Contains(args, "--auto") {
		o.predicted = records[len(records)-1].Predicted
	}
	return o, nil
}

var heldMiB = regexp.MustCompile(`(?m)^memory +peak \d+ MiB resident, (\d+) MiB of it held`)

// read takes the measured tokens out of a table: those after the warm-up.
func (o *outcome) read(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil {
		return err
	}
	if len(rows) < warmTokens+2 {
		return fmt.Errorf("%s has %d rows: the run made too few tokens", path, len(rows))
	}
	column := func(row []string, name string) float64 {
		n, _ := strconv.ParseFloat(row[slices.Index(rows[0], name)], 64) // a table of ours
		return n
	}
	var hits, misses, elapsed float64
	measured := rows[1+warmTokens+1:]
	for _, row := range measured {
		hits, misses, elapsed = hits+column(row, "hits"), misses+column(row, "misses"), elapsed+column(row, "elapsed_ns")
	}
	o.perToken = elapsed / 1e9 / float64(len(measured))
	if hits+misses > 0 {
		o.hits = hits / (hits + misses)
	}
	return nil
}

func lastLine(said string) string {
	said = strings.TrimSpace(said)
	return said[strings.LastIndexByte(said, '\n')+1:]
}

// String is what is said while the rounds go on.
func (o outcome) String() string {
	return fmt.Sprintf("%.2f tok/s, %.1f%% hits, %s held", 1/o.perToken, 100*o.hits, mib(o.held))
}

func mib(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
