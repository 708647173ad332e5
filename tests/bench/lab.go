package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/bmoe/bmoe/ci/cgroup"
	"github.com/bmoe/bmoe/ci/console"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/platform/process"
	"github.com/bmoe/bmoe/platform/storage"
	"github.com/bmoe/bmoe/tests/synth"
)

// cacheState is what of a model's files is in the system's file cache before a measurement.
type cacheState int

const (
	asIs cacheState = iota
	dropped
	whole
)

// measurement is a job in its surroundings.
type measurement struct {
	name     string
	what     string // for people
	job      job
	before   cacheState
	confined bool // in a control group of options.memory
}

// patience is how long a child may take.
const patience = 4 * time.Minute

// found is what was measured: by name of the measurement an outcome for each round, nil where it failed.
type found map[string][]*outcome

// lab takes measurements.
type lab struct {
	options
	exe     string
	bench   subject
	shards  subject
	list    []measurement
	found   found
	errs    map[string]error // of each measurement that failed, the first
	balance string           // what the search for a cache size found
	start   time.Time
}

// subject is a model that is measured.
type subject struct {
	path    string
	profile *model.Profile
}

// shardedBytes is about the size of the model that comes in several files.
const shardedBytes = 2 << 30

func newLab(ctx context.Context, o options) (*lab, error) {
	l := &lab{options: o, found: found{}, errs: map[string]error{}, start: time.Now()}
	var err error
	if l.exe, err = process.Executable(); err != nil {
		return nil, err
	}
	if o.model != "" {
		l.bench.path = o.model
	} else {
		spec, err := synth.Named("bench-8g")
		if err != nil {
			return nil, err
		}
		if l.bench.path, err = kept(ctx, filepath.Join(o.folder, "bench-8g.gguf"), spec); err != nil {
			return nil, err
		}
	}
	if l.bench.profile, err = model.Read(l.bench.path); err != nil {
		return nil, err
	}
	if l.bench.profile.ExpertCount == 0 {
		return nil, fmt.Errorf("%s has no experts to stream", o.model)
	}
	if o.wants("E") {
		spec := synth.Sized(shardedBytes)
		spec.Shards = 4
		if l.shards.path, err = kept(ctx, filepath.Join(o.folder, "bench-shards.gguf"), spec); err != nil {
			return nil, err
		}
		if l.shards.profile, err = model.Read(l.shards.path); err != nil {
			return nil, err
		}
	}
	l.list = l.measurements()
	return l, nil
}

// kept is the model's file, written unless an earlier run left it. A file that is there is whole, and its size says which
// one it is.
func kept(ctx context.Context, path string, spec synth.Spec) (string, error) {
	files := synth.Files(path, spec)
	want, err := synth.Size(spec)
	if err != nil {
		return "", err
	}
	var have int64
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			have += info.Size()
		}
	}
	if have == want {
		return files[0], nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	for _, f := range files { // its room may be needed
		if err := os.Remove(f); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	bar := console.Start("writing "+filepath.Base(path)+", random weights", want, true)
	if _, err := synth.Write(ctx, path, spec, func(written, _ int64) { bar.Set(written) }); err != nil {
		bar.Failed()
		return "", err
	}
	bar.Done()
	return files[0], nil
}

// work takes every measurement that the checks need, round by round. Its error ends the run; one measurement's failure does
// not.
func (l *lab) work(ctx context.Context) error {
	needed := map[string]bool{}
	for _, c := range l.checks() {
		if l.wants(c.letter) {
			for _, name := range c.needs {
				needed[name] = true
			}
		}
	}
	if needed["serial"] {
		if err := l.findBalance(ctx); err != nil {
			return fmt.Errorf("find the cache size at which reading takes as long as computing: %w", err)
		}
	}
	for round := range l.rounds {
		for _, m := range l.list {
			if !needed[m.name] {
				continue
			}
			o, err := l.measure(ctx, m)
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
			if err != nil {
				console.Say("round %d of %d, %s: %v", round+1, l.rounds, m.what, err)
				if l.errs[m.name] == nil {
					l.errs[m.name] = err
				}
				o = nil
			} else {
				console.Say("round %d of %d, %s: %s", round+1, l.rounds, m.what, o)
			}
			l.found[m.name] = append(l.found[m.name], o)
		}
	}
	return nil
}

// measure brings the file cache into the state that the measurement starts from, and runs it.
func (l *lab) measure(ctx context.Context, m measurement) (*outcome, error) {
	if err := l.prepare(ctx, m); err != nil {
		return nil, err
	}
	var group *cgroup.Group
	if m.confined {
		var err error
		if group, err = cgroup.New(cgroup.Root, fmt.Sprintf("bmoe-bench-%d", os.Getpid()), l.memory); err != nil {
			return nil, fmt.Errorf("no memory control group can be made: %w", err)
		}
	}
	o, err := l.spawn(ctx, group, m.job)
	if group != nil {
		if o != nil {
			o.GroupPeak = group.Peak()
		}
		err = errors.Join(err, group.Remove())
	}
	return o, err
}

func (l *lab) prepare(ctx context.Context, m measurement) error {
	if m.job.Generate == nil || m.before == asIs {
		return nil
	}
	s := l.bench
	if m.job.Generate.Model == l.shards.path {
		s = l.shards
	}
	for _, shard := range s.profile.Shards {
		path := filepath.Join(filepath.Dir(s.path), shard.Name)
		if m.before == dropped {
			if err := storage.DropCache(path); err != nil {
				return err
			}
			continue
		}
		const piece = 256 << 20
		for at := int64(0); at < shard.Bytes; at += piece {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := storage.ReadAhead(path, at, piece); err != nil {
				return err
			}
		}
	}
	return nil
}

// spawn runs a job in a fresh process, in the group if there is one.
func (l *lab) spawn(ctx context.Context, group *cgroup.Group, j job) (*outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := group.Command(ctx, l.exe, childArgument)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	// It stays open until the child has ended, which a child takes for its parent being alive.
	written := json.NewEncoder(in).Encode(j)
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("ended after %s: %w", patience, ctx.Err())
	case errors.As(err, &exit) && exit.ExitCode() < 0:
		return nil, fmt.Errorf("ended by the system: %v %s", err, lastLine(said.String()))
	case err != nil:
		return nil, errors.New(cmp.Or(lastLine(said.String()), err.Error()))
	case written != nil:
		return nil, written
	}
	var o outcome
	if err := json.Unmarshal(out.Bytes(), &o); err != nil {
		return nil, fmt.Errorf("the outcome can't be read: %w", err)
	}
	return &o, nil
}

// lastLine is where a program says why it ended.
func lastLine(said string) string {
	said = strings.TrimSpace(said)
	return said[strings.LastIndexByte(said, '\n')+1:]
}

// findBalance looks for the cache size at which a run without overlap waits for reads about as long as it computes, and has
// the measurements with and without overlap use it. The larger the cache, the less is read.
func (l *lab) findBalance(ctx context.Context) error {
	const steps, near = 5, 0.04
	low, high := l.bench.profile.TokenCycle(0), l.bench.profile.ExpertBytes()
	for step := range steps {
		size := (low + high) / 2
		if step == 0 {
			size = low + (high-low)/4 // most machines read fast enough for a small cache
		}
		size &^= 1<<20 - 1
		for i := range l.list {
			if m := &l.list[i]; m.name == "serial" || m.name == "overlap" {
				m.job.Generate.Cache = size
			}
		}
		m := *l.named("serial")
		short := *m.job.Generate
		short.Tokens = min(short.Tokens, 32)
		m.job.Generate = &short
		o, err := l.measure(ctx, m)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil {
			return err
		}
		share := o.Decode.Wait.Seconds() / o.Decode.Elapsed.Seconds()
		l.balance = fmt.Sprintf("a cache of %s, where a run without overlap waits for reads %.0f%% of the time", mib(size), 100*share)
		console.Say("for overlap: %s", l.balance)
		switch {
		case share > 0.5+near:
			low = size
		case share < 0.5-near:
			high = size
		default:
			return nil
		}
	}
	return nil
}

func (l *lab) named(name string) *measurement {
	for i := range l.list {
		if l.list[i].name == name {
			return &l.list[i]
		}
	}
	return nil
}

// String is what is said while the rounds go on.
func (o *outcome) String() string {
	switch {
	case len(o.Rates) > 0:
		var parts []string
		for _, r := range o.Rates {
			parts = append(parts, fmt.Sprintf("%.0f MB/s with %d", r.PerSecond/1e6, r.Lanes))
		}
		return strings.Join(parts, ", ")
	case o.Decode.Tokens == 0:
		return fmt.Sprintf("%.2f s, %s read", o.Report.Load.Seconds(), mib(o.Loaded))
	}
	return fmt.Sprintf("%.2f tok/s, prefill %.2f s", o.Decode.perSecond(), o.Prefill.Elapsed.Seconds())
}

// mib is a count of bytes for people.
func mib(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }
