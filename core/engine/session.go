package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/bmoe/bmoe/core/dense"
	"github.com/bmoe/bmoe/core/experts"
	"github.com/bmoe/bmoe/core/gguf"
	"github.com/bmoe/bmoe/core/llama"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/platform/cpu"
	"github.com/bmoe/bmoe/platform/process"
	"github.com/bmoe/bmoe/platform/storage"
)

// ErrInput is wrapped by errors about what the person gave: a bad file, a value that can't be.
var ErrInput = errors.New("bad input")

// inputError says its cause alone: that it is an input error is for errors.Is.
type inputError struct{ error }

func (inputError) Is(target error) bool { return target == ErrInput }
func (e inputError) Unwrap() error      { return e.error }

func input(format string, args ...any) error { return inputError{fmt.Errorf(format, args...)} }

// Session is an open model.
type Session struct {
	cfg     Config
	profile *model.Profile
	lib     *llama.Library
	files   []*storage.File
	pool    *llama.Threadpool
	store   *experts.Store
	dense   *dense.Set
	model   *llama.Model
	ctx     *llama.Context

	mu        sync.Mutex
	report    Report
	used      int  // tokens in the context
	abandoned bool // a call into llama.cpp did not come back in time; nothing of it may be freed

	sampler struct {
		stop chan struct{}
		done sync.WaitGroup
	}
}

// grace is how long a native call may take to end once it was asked to. After it, it is left behind.
const grace = 500 * time.Millisecond

// Libraries opens the llama.cpp libraries beside the executable.
func Libraries() (*llama.Library, error) {
	exe, err := process.Executable()
	if err != nil {
		return nil, err
	}
	return llama.Load(filepath.Dir(exe))
}

// Open loads the model as the config says. When ctx ends first, it returns ctx's error within a second.
func Open(ctx context.Context, cfg Config) (*Session, error) {
	type opened struct {
		s   *Session
		err error
	}
	done := make(chan opened, 1)
	go func() {
		s, err := open(ctx, cfg)
		done <- opened{s, err}
	}()
	select {
	case o := <-done:
		return o.s, o.err
	case <-ctx.Done():
	}
	select {
	case o := <-done:
		if o.s != nil {
			o.s.Close()
		}
	case <-time.After(grace): // the loader is inside one long system call; the process is about to end
	}
	return nil, ctx.Err()
}

func open(ctx context.Context, cfg Config) (_ *Session, err error) {
	start := time.Now()
	file, err := gguf.Open(cfg.Model)
	if err != nil {
		return nil, inputError{err}
	}
	s := &Session{cfg: cfg}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.profile, err = model.FromGGUF(file); err != nil {
		return nil, inputError{err}
	}
	if err := s.settle(file); err != nil {
		return nil, err
	}
	if s.lib, err = Libraries(); err != nil {
		return nil, err
	}
	if cfg.Fatal != nil {
		if err := s.lib.OnFatal(cfg.Fatal); err != nil {
			return nil, err
		}
	}
	typeK, typeV, flash, err := s.kvTypes()
	if err != nil {
		return nil, err
	}
	// Lanes block in reads while two threads of this process compute inside C: each needs a place to run at once when it
	// comes back.
	if n := s.cfg.Lanes + max(s.cfg.Threads, s.cfg.ThreadsBatch) + 2; runtime.GOMAXPROCS(0) < n {
		runtime.GOMAXPROCS(n)
	}
	s.pool = s.lib.NewThreadpool(max(s.cfg.Threads, s.cfg.ThreadsBatch), poll)
	options := llama.ModelOptions{
		Repack:   s.cfg.Repack && !s.cfg.Stream,
		Progress: func(f float64) bool { s.progress("loading", f); return true },
	}
	if s.cfg.ExpertsUsed > 0 && s.cfg.ExpertsUsed != s.profile.ExpertUsed {
		options.IntKV = map[string]int64{s.profile.Architecture + ".expert_used_count": int64(s.cfg.ExpertsUsed)}
	}
	if s.cfg.Stream {
		if err := s.stream(file, &options); err != nil {
			return nil, err
		}
	}
	load := func() error {
		s.model, err = s.lib.LoadModel(ctx, cfg.Model, options)
		return err
	}
	if s.cfg.Stream {
		err = s.lib.WithoutPopulate(load)
	} else {
		err = load()
	}
	if s.dense != nil {
		if derr := s.dense.Loaded(); derr != nil {
			return nil, fmt.Errorf("load %s: %w", cfg.Model, derr)
		}
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, input("%s: %v", cfg.Model, err)
	}
	if s.store != nil {
		if err := s.store.Bound(); err != nil {
			return nil, fmt.Errorf("%s: %w", cfg.Model, err)
		}
	}
	if s.dense != nil && s.cfg.Dense == "pinned" {
		s.pinDense()
	}
	if s.ctx, err = s.model.NewContext(llama.ContextOptions{
		Length: s.cfg.Context, Ubatch: s.cfg.Ubatch,
		Threads: s.cfg.Threads, ThreadsBatch: s.cfg.ThreadsBatch,
		TypeK: typeK, TypeV: typeV, FlashAttn: flash, OutputsMax: 1, OpOffload: true,
	}, s.pool); err != nil {
		return nil, input("%s: %v; a smaller context needs less memory", cfg.Model, err)
	}
	if err := s.roomToCompute(); err != nil {
		return nil, err
	}
	if s.store != nil {
		if err := s.allocate(); err != nil {
			return nil, err
		}
	}
	if s.cfg.Stream && s.cfg.Dense == "warm" {
		if err := s.warm(ctx); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	s.progress("loading", 1)
	s.report.Load = time.Since(start)
	s.report.ContextBytes = s.profile.KVBytes(s.cfg.Context, bytesPerElement(s.cfg.TypeK), bytesPerElement(s.cfg.TypeV))
	s.report.ComputeBytes = s.ctx.ComputeBytes
	s.exactly()
	s.report.Mode = s.mode()
	s.report.Libraries = s.lib.Version()
	s.sample()
	return s, nil
}

// settle fills in what the config leaves to defaults, and refuses what can't be.
func (s *Session) settle(file *gguf.File) error {
	c := &s.cfg
	if c.Context == 0 {
		c.Context = min(4096, s.profile.Context)
	}
	if c.Ubatch == 0 || c.Ubatch > c.Context {
		c.Ubatch = c.Context
	}
	if c.Threads == 0 {
		c.Threads = cpu.Physical()
	}
	if c.ThreadsBatch == 0 {
		c.ThreadsBatch = c.Threads
	}
	s.capThreads("threads", &c.Threads)
	s.capThreads("threads for the prompt", &c.ThreadsBatch)
	if c.Lanes == 0 {
		c.Lanes = 4
	}
	if c.Stream && s.profile.ExpertCount == 0 {
		c.Stream = false
		s.note("%s has no experts to stream: it runs as plain llama.cpp", filepath.Base(c.Model))
	}
	if c.Dense == "" {
		c.Dense = "mmap"
		if c.Stream {
			c.Dense = "anon"
		}
	}
	switch {
	case !c.ReleaseMmap:
	case c.Stream && c.Dense != "mmap" && c.Dense != "warm":
		s.note("there is no mapping to release: with the dense set in memory the file is unmapped once it is loaded")
	default:
		s.note("the mapping stays: what every token needs is used out of it; --dense-weights anon takes it into memory and releases the file")
	}
	if !c.Stream && c.Dense != "mmap" {
		s.note("the dense set stays mapped: --dense-weights %s needs streaming", c.Dense)
		c.Dense = "mmap"
	}
	if c.ExpertsUsed < 0 || c.ExpertsUsed > s.profile.ExpertCount {
		return input("%s: a routing width of %d, and the model has %d experts", c.Model, c.ExpertsUsed, s.profile.ExpertCount)
	}
	for what, n := range map[string]int{"context": c.Context, "ubatch": c.Ubatch, "threads": c.Threads, "threads for a prefill": c.ThreadsBatch, "lanes": c.Lanes} {
		if n < 1 {
			return input("%d is no number of %s", n, what)
		}
	}
	if c.Threads > 512 || c.ThreadsBatch > 512 {
		return input("%d threads, and ggml takes 512 at most", max(c.Threads, c.ThreadsBatch))
	}
	if len(c.Devices) > 0 {
		return input("layers on %s: this build computes on the host alone", strings.Join(c.Devices, ", "))
	}
	return s.roomForContext(file)
}

// capThreads leaves no more threads than there are processors for this process. Threads wait for each other by spinning, so one
// without a processor of its own stops the others for a time slice at every step (measured: docs/streaming.md).
func (s *Session) capThreads(what string, n *int) {
	if most := max(runtime.NumCPU(), cpu.Physical()); *n > most {
		s.note("%d %s were asked for, and this process has %d processors: %d are used, since more would wait for each other", *n, what, most, most)
		*n = most
	}
}

func (s *Session) kvTypes() (k, v, flash int32, err error) {
	name := func(n string) string {
		if n == "" {
			return "f16"
		}
		return n
	}
	if k, err = s.lib.KVType(name(s.cfg.TypeK)); err == nil {
		v, err = s.lib.KVType(name(s.cfg.TypeV))
	}
	if err != nil {
		return 0, 0, 0, input("KV cache: %v", err)
	}
	switch s.cfg.FlashAttn {
	case "", "auto":
		flash = -1
	case "on":
		flash = 1
	case "off":
		flash = 0
	default:
		return 0, 0, 0, input("flash attention is auto, on or off, not %q", s.cfg.FlashAttn)
	}
	if v != 0 && v != 1 && v != 30 && flash == 0 {
		return 0, 0, 0, input("a KV cache with %s values needs flash attention, which is off", s.cfg.TypeV)
	}
	return k, v, flash, nil
}

// poll is how long an idle compute thread spins before it sleeps: ggml's own default. Waking a thread costs more than the
// cores it takes from the lanes, which are blocked in reads most of the time (measured: docs/streaming.md).
const poll = 50

// stream opens the files for reading experts and sends tensors where they belong.
func (s *Session) stream(file *gguf.File, o *llama.ModelOptions) error {
	for _, shard := range file.Shards {
		f, err := storage.Open(shard.Path, s.cfg.Direct)
		if err != nil {
			return inputError{err}
		}
		s.files = append(s.files, f)
	}
	if f := s.files[max(s.profile.ExpertShard(), 0)]; s.cfg.Direct && !f.Direct() {
		s.note("%s is read through the page cache: %s", filepath.Base(f.Path()), f.Why())
	}
	cfg := experts.Config{
		Library: s.lib, Pool: s.pool,
		Lanes: s.cfg.Lanes, Overlap: s.cfg.Overlap, Threads: s.cfg.Threads, ThreadsBatch: s.cfg.ThreadsBatch,
	}
	for _, f := range s.files {
		through := experts.File(f)
		if s.cfg.Through != nil {
			through = s.cfg.Through(f)
		}
		cfg.Files = append(cfg.Files, through)
	}
	for t := range s.profile.Experts() {
		role := experts.In
		if t.Kind == model.Down {
			role = experts.Out
		}
		cfg.Tensors = append(cfg.Tensors, experts.Tensor{
			Name: t.Name, Layer: t.Layer, Role: role, Experts: t.Slices(), Slice: t.SliceBytes(), File: t.Shard, Offset: t.Offset,
		})
	}
	var err error
	if s.store, err = experts.New(cfg); err != nil {
		return err
	}
	o.Overrides = append(o.Overrides, llama.Override{Pattern: model.ExpertPattern(-1), Type: s.store.BufferType()})
	if s.cfg.Dense == "anon" || s.cfg.Dense == "pinned" {
		places := map[string]dense.Place{}
		for _, t := range s.profile.Tensors {
			places[t.Name] = dense.Place{File: t.Shard, Offset: t.Offset, Size: t.Bytes()}
		}
		s.dense = dense.New(s.lib, s.files, places, s.cfg.Lanes)
		o.Overrides = append(o.Overrides, llama.Override{Pattern: ".*", Type: s.dense.BufferType()})
	}
	return nil
}

// warm reads the dense set through the page cache once.
func (s *Session) warm(ctx context.Context) error {
	for i, t := range s.profile.Tensors {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if t.Kind != model.NotExpert {
			continue
		}
		if err := storage.ReadAhead(s.files[t.Shard].Path(), t.Offset, t.Bytes()); err != nil {
			return err
		}
		s.progress("warming the dense set", float64(i+1)/float64(len(s.profile.Tensors)))
	}
	return nil
}

func (s *Session) progress(step string, f float64) {
	if s.cfg.Progress != nil {
		s.cfg.Progress(step, f)
	}
}

func (s *Session) note(format string, args ...any) {
	s.report.Notes = append(s.report.Notes, fmt.Sprintf(format, args...))
}

// Close releases everything. A session with a native call left behind is let be: the process is about to end.
func (s *Session) Close() error {
	if s.sampler.stop != nil {
		close(s.sampler.stop)
		s.sampler.done.Wait()
		s.sampler.stop = nil
	}
	if s.abandoned {
		return nil
	}
	var errs []error
	if s.ctx != nil {
		s.ctx.Free()
	}
	if s.model != nil {
		s.model.Free()
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	if s.dense != nil {
		s.dense.Close()
	}
	if s.pool != nil {
		s.pool.Free()
	}
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	s.ctx, s.model, s.store, s.dense, s.pool, s.files = nil, nil, nil, nil, nil, nil
	return errors.Join(errs...)
}
