package experts

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bmoe/bmoe/core/llama"
	"github.com/bmoe/bmoe/platform/pages"
)

// leastAlign is what a slice's place in memory and in the file agree in at least: a cache line, which is more than the
// 32 bytes that tensors are aligned to in a file.
const leastAlign = 64

// Tensor is one stacked expert tensor of a model file: Experts slices of Slice bytes, one after the other.
type Tensor struct {
	Name    string
	Layer   int
	Role    Role
	Experts int
	Slice   int64 // bytes
	File    int   // index into Config.Files
	Offset  int64 // of expert 0 in that file, bytes
}

// Role is where in a layer an expert tensor multiplies.
type Role int

const (
	In  Role = iota // gate, up or both fused: reads the layer's input
	Out             // down: reads what the others gave
)

// File is what slices are read from: a storage.File, or what stands in for one.
type File interface {
	// ReadAt fills p from off. Its address, its length and off are multiples of Align; several lanes call it at once.
	ReadAt(p []byte, off int64) (int, error)
	Align() int
	Path() string
}

// Config is what a Store is made of.
type Config struct {
	Library *llama.Library
	Pool    *llama.Threadpool
	Files   []File
	Tensors []Tensor

	Lanes        int  // concurrent reads
	Overlap      bool // compute resident experts while the missing ones are read
	Threads      int  // for one token
	ThreadsBatch int  // for more
}

// Stats counts what the store did. Read it between decodes.
type Stats struct {
	Hits, Misses int64         // slices found in a slot, slices that were read
	ReadBytes    int64         // bytes read into slots
	Wait         time.Duration // time the computation stood still for reads
	Compute      time.Duration // time in expert matmuls
}

// Store is one session's expert cache behind the device.
type Store struct {
	cfg     Config
	lib     *llama.Library
	id      int
	bufType *llama.BufferType
	backend uintptr
	threads int // threads of backend now

	// What the store asks of ggml: an empty graph, and to compute it.
	newGraph func(nodes int) (uintptr, *llama.Graph)
	exec     func(threads int) bool

	lock func(r *pages.Region, off, n int) error // (*pages.Region).Lock

	align int64 // a slot keeps its slice's misalignment to this in the file, so that a direct read needs no copy

	tensors []tensor
	layers  [][]int32 // per MoE layer in order, its tensors
	classes []*class

	jobs     chan job
	done     chan read
	inflight int
	lanes    sync.WaitGroup

	gen     int64 // graph calls so far; a slot pinned for a later one is not evicted
	work    work
	ahead   lookahead
	stats   Stats
	abort   atomic.Bool
	wake    chan struct{}
	err     error
	bound   int // tensors the loader has handed over
	unknown string

	trace   func(tensor string, layer int, expert int32)
	reached func(layer, layers int)
}

type tensor struct {
	Tensor
	class   *class
	slot    []int32 // per expert: its slot in class, -1 where it has none
	out     []int32 // for an In tensor: the Out tensors of its layer
	next    []int32 // the In tensors of the next MoE layer
	layerAt int
	columns int64 // elements of a row, as the loader has it
}

// class is the slots of one size. Slices of nearly one size share a class.
type class struct {
	stride  int64
	largest int64 // the largest slice
	bytes   int64 // of all slices of the class, which sets its share of the cache
	slices  int
	ahead   int // slots taken ahead by the wide graph call under way
	guessed int // slots taken for a guess that is not settled
	region  *pages.Region
	base    uintptr
	mem     []byte
	locked  int64 // bytes from the first that are locked in place
	slots   []slot
	head    int32 // used last
	tail    int32 // to be evicted first
}

type slot struct {
	tensor, expert int32
	prev, next     int32
	pin            int64 // last graph call that needs it
	state          state
	fresh          bool                  // read ahead and not asked for yet
	parts          atomic.Int32          // reads outstanding
	failed         atomic.Pointer[error] // of the last read, where it failed
	claim          atomic.Int32          // who has a speculative read
}

type state uint8

const (
	empty state = iota
	reading
	ready
)

// New makes a store whose tensors the loader can find. It has no slots before Allocate.
func New(cfg Config) (*Store, error) {
	if len(cfg.Tensors) == 0 {
		return nil, errors.New("the model has no expert tensors to stream")
	}
	s := index(cfg)
	s.newGraph, s.exec = s.lib.NewGraph, s.execGraph
	s.backend = s.lib.NewCPUBackend(cfg.Pool)
	if s.backend == 0 {
		return nil, errors.New("the host's compute backend does not start")
	}
	if err := attach(s); err != nil {
		s.lib.BackendFree(s.backend)
		return nil, err
	}
	return s, nil
}

// index is a store that knows its tensors, and neither ggml nor memory yet.
func index(cfg Config) *Store {
	s := &Store{cfg: cfg, lib: cfg.Library, align: leastAlign, wake: make(chan struct{}, 1), lock: (*pages.Region).Lock}
	for _, f := range cfg.Files {
		s.align = max(s.align, int64(f.Align()))
	}
	at := map[int]int{}
	for _, t := range cfg.Tensors {
		i, ok := at[t.Layer]
		if !ok {
			i = len(s.layers)
			at[t.Layer] = i
			s.layers = append(s.layers, nil)
		}
		e := tensor{Tensor: t, slot: make([]int32, t.Experts), layerAt: i}
		for j := range e.slot {
			e.slot[j] = -1
		}
		s.layers[i] = append(s.layers[i], int32(len(s.tensors)))
		s.tensors = append(s.tensors, e)
	}
	for i := range s.tensors {
		t := &s.tensors[i]
		for _, j := range s.layers[t.layerAt] {
			if s.tensors[j].Role == Out {
				t.out = append(t.out, j)
			}
		}
		if t.layerAt+1 < len(s.layers) {
			for _, j := range s.layers[t.layerAt+1] {
				if s.tensors[j].Role == In {
					t.next = append(t.next, j)
				}
			}
		}
	}
	s.classify()
	return s
}

// classify sorts the tensors into classes of slot sizes: slices within an eighth of a class's largest share it, so that a
// mix of quantizations wastes little of the cache.
func (s *Store) classify() {
	order := make([]int, len(s.tensors))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.tensors[b].Slice, s.tensors[a].Slice) })
	var c *class
	for _, i := range order {
		t := &s.tensors[i]
		if c == nil || t.Slice < c.largest-c.largest/8 {
			c = &class{largest: t.Slice, stride: s.slotBytes(t.Slice), head: -1, tail: -1}
			s.classes = append(s.classes, c)
		}
		t.class = c
		c.bytes += t.Slice * int64(t.Experts)
		c.slices += t.Experts
	}
}

// slotBytes is a slot's stride: room for the slice with its misalignment at the front and the rest of the last block.
func (s *Store) slotBytes(slice int64) int64 {
	return (slice+s.align-1)&^(s.align-1) + s.align
}

// few is how many slots a class needs to work at all when it caches nothing: what the lanes fill while as many compute.
func (s *Store) few() int { return 2*s.cfg.Lanes + 2 }

// Smallest is the bytes that a store without a cache holds: the few slots that slices pass through.
func (s *Store) Smallest() int64 {
	var n int64
	for _, c := range s.classes {
		n += int64(s.few()) * c.stride
	}
	return n
}

// Whole is the bytes of slots that hold every expert.
func (s *Store) Whole() int64 {
	var n int64
	for i := range s.tensors {
		n += int64(s.tensors[i].Experts) * s.tensors[i].class.stride
	}
	return n
}

// Allocate takes the slots: as many as cacheBytes hold, no more than there are slices, no fewer than slices can pass
// through. It faults their pages in, and starts the lanes. The result is the bytes taken.
func (s *Store) Allocate(cacheBytes int64) (int64, error) {
	var all, taken int64
	for _, c := range s.classes {
		all += c.bytes
	}
	if n := s.lookaheadBytes(); n > 0 && n < cacheBytes/8 {
		r, err := pages.Alloc(int(n))
		if err != nil {
			return 0, fmt.Errorf("take %d MiB to look ahead with: %w", n>>20, err)
		}
		s.ahead.region = r
		taken = n
		cacheBytes -= n
	}
	for _, c := range s.classes {
		share := int64(float64(cacheBytes) * (float64(c.bytes) / float64(all)))
		n := min(max(int(share/c.stride), s.few()), c.slices)
		r, err := pages.Alloc(n * int(c.stride))
		if err != nil {
			return taken, fmt.Errorf("take %d MiB for expert slots: %w", int64(n)*c.stride>>20, err)
		}
		c.region, c.base, c.mem = r, r.Base(), r.Bytes()
		c.slots = make([]slot, n)
		for i := range c.slots {
			c.slots[i].tensor = -1
			c.pushFront(int32(i))
		}
		taken += int64(len(c.mem))
	}
	s.populate()
	queue := 0
	for _, c := range s.classes {
		queue += len(c.slots)
	}
	s.jobs = make(chan job, queue*maxParts)
	s.done = make(chan read, queue)
	for range s.cfg.Lanes {
		s.lanes.Add(1)
		go s.lane()
	}
	if err := s.work.init(s); err != nil {
		return taken, err
	}
	return taken, nil
}

// populate touches every page of the slots once: a page's first use costs its zeroing, which is better paid here than in
// the middle of a token.
func (s *Store) populate() {
	var wg sync.WaitGroup
	step := pages.Size()
	const piece = 64 << 20
	limit := make(chan struct{}, max(s.cfg.ThreadsBatch, 1))
	for _, c := range s.classes {
		for at := 0; at < len(c.mem); at += piece {
			limit <- struct{}{}
			wg.Go(func() {
				for i := at; i < min(at+piece, len(c.mem)); i += step {
					c.mem[i] = 0
				}
				<-limit
			})
		}
	}
	wg.Wait()
}

// Stats is what was done so far. Call it between decodes only.
func (s *Store) Stats() Stats { return s.stats }

// Err is the read error that failed the last decode, if one did.
func (s *Store) Err() error { return s.err }

// Abort makes the graph under way fail at once. It may be called from any goroutine.
func (s *Store) Abort() {
	s.abort.Store(true)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Bound checks that the loader handed over every expert tensor, and no other.
func (s *Store) Bound() error {
	if s.unknown != "" {
		return fmt.Errorf("the model's tensor %s is not in the file's list of experts", s.unknown)
	}
	if s.bound != len(s.tensors) {
		return fmt.Errorf("llama.cpp loaded %d of the file's %d expert tensors for streaming", s.bound, len(s.tensors))
	}
	return nil
}

// Trace calls f for every slice that a token asks for, in order. It is for calibration and tests: nil ends it.
func (s *Store) Trace(f func(tensor string, layer int, expert int32)) { s.trace = f }

// Watch calls f when a graph of many tokens reaches a layer with experts, counted from 0, of so many: nil ends it. Such a graph
// may take minutes. It is set between graphs.
func (s *Store) Watch(f func(layer, layers int)) { s.reached = f }

// Close gives the slots back. The model that uses the store must be gone.
func (s *Store) Close() error {
	detach(s)
	if s.jobs != nil {
		close(s.jobs)
		s.lanes.Wait()
		s.jobs = nil
	}
	if s.backend != 0 {
		s.lib.BackendFree(s.backend)
		s.backend = 0
	}
	var errs []error
	for _, c := range s.classes {
		if c.region != nil {
			errs = append(errs, c.region.Free())
			c.region, c.mem = nil, nil
		}
	}
	if s.ahead.region != nil {
		errs = append(errs, s.ahead.region.Free())
		s.ahead = lookahead{}
	}
	if s.work.ctx != 0 {
		s.lib.FreeGraph(s.work.ctx)
		s.work.ctx = 0
	}
	errs = append(errs, s.work.free())
	return errors.Join(errs...)
}
