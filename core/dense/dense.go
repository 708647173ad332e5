// Package dense holds the dense set, the weights that every token needs, in memory of its own: a host buffer type whose
// tensors are read from the model file past the page cache, and which can be locked.
//
// It must not know which tensors are dense: the loader sends it those that nothing else claims.
package dense

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sync/errgroup"

	"github.com/bmoe/bmoe/core/llama"
	"github.com/bmoe/bmoe/platform/pages"
	"github.com/bmoe/bmoe/platform/storage"
)

// Place is where a tensor's bytes are.
type Place struct {
	File   int // index into the files
	Offset int64
	Size   int64
}

// Set is one session's dense set.
type Set struct {
	files   []*storage.File
	places  map[string]Place
	lanes   int
	bufType *llama.BufferType

	mu      sync.Mutex
	bounces []*pages.Region // a chunk long each, for direct reads
	regions map[uintptr]*pages.Region
	err     error
	bytes   atomic.Int64
	locked  int64
}

// chunk is the bytes of one read.
const chunk = 4 << 20

// host is the tables that C reads, filled once, and the sets that live by the number in their buffer type's context.
// They are Go memory that this variable keeps reachable; Go does not move memory and their fields are addresses.
var host struct {
	sync.Mutex
	lib     *llama.Library
	name    []byte
	types   llama.BufferTypeInterface
	buffers llama.BufferInterface
	sets    []*Set
	kept    []*llama.BufferType
}

// New makes a set whose tensors are read from the files by so many lanes.
func New(lib *llama.Library, files []*storage.File, places map[string]Place, lanes int) *Set {
	s := &Set{files: files, places: places, lanes: max(lanes, 1), regions: map[uintptr]*pages.Region{}}
	host.Lock()
	defer host.Unlock()
	if host.lib == nil {
		register(lib)
	}
	s.bufType = &llama.BufferType{Interface: host.types, Device: lib.CPUDevice(), Context: uintptr(len(host.sets))}
	host.sets = append(host.sets, s)
	host.kept = append(host.kept, s.bufType)
	return s
}

// BufferType is where the loader is to put the dense tensors, as llama.Override wants it.
func (s *Set) BufferType() uintptr { return uintptr(unsafe.Pointer(s.bufType)) }

// Bytes is the memory the set takes.
func (s *Set) Bytes() int64 { return s.bytes.Load() }

// Loaded ends the loading: it gives back what reads needed, and tells the first that failed, since the loader can't be told.
func (s *Set) Loaded() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.bounces {
		_ = r.Free() // memory that does not come back harms nothing that follows
	}
	s.bounces = nil
	return s.err
}

// Lock keeps the set in memory. Where the system refuses a part, what it granted before stays locked, the rest is ordinary
// memory, and the error says why. The result is the bytes that are locked.
func (s *Set) Lock() (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locked = 0
	for _, r := range s.regions {
		if err := r.Lock(0, len(r.Bytes())); err != nil {
			return s.locked, err
		}
		s.locked += int64(len(r.Bytes()))
	}
	s.locked = min(s.locked, s.bytes.Load()) // regions end with a page, tensors before
	return s.locked, nil
}

// Close forgets the set. The model that uses it must be gone.
func (s *Set) Close() {
	host.Lock()
	defer host.Unlock()
	if i := int(s.bufType.Context); host.sets[i] == s {
		host.sets[i] = nil
	}
}

func register(lib *llama.Library) {
	h := &host
	h.lib = lib
	h.name = llama.CString("BMOE_Dense")
	h.types = llama.BufferTypeInterface{
		GetName:      purego.NewCallback(func(uintptr) uintptr { return llama.Addr(h.name) }),
		AllocBuffer:  purego.NewCallback(allocBuffer),
		GetAlignment: purego.NewCallback(func(uintptr) uintptr { return 64 }),
		IsHost:       purego.NewCallback(func(uintptr) uintptr { return 1 }),
	}
	h.buffers = llama.BufferInterface{
		Free:         purego.NewCallback(freeBuffer),
		GetBase:      purego.NewCallback(func(b *llama.Buffer) uintptr { return b.Context }),
		SetTensor:    purego.NewCallback(setTensor),
		GetTensor:    purego.NewCallback(getTensor),
		MemsetTensor: purego.NewCallback(memsetTensor),
		Clear:        purego.NewCallback(clearBuffer),
	}
}

func setOf(t *llama.BufferType) *Set {
	host.Lock()
	defer host.Unlock()
	return host.sets[t.Context]
}

func allocBuffer(t *llama.BufferType, size uintptr) uintptr {
	s := setOf(t)
	if s == nil {
		return 0
	}
	r, err := pages.Alloc(max(int(size), pages.Size()))
	if err != nil {
		s.fail(fmt.Errorf("take %d MiB for the dense set: %w", size>>20, err))
		return 0
	}
	s.mu.Lock()
	s.regions[r.Base()] = r
	s.mu.Unlock()
	s.bytes.Add(int64(size))
	return host.lib.BufferInit(uintptr(unsafe.Pointer(t)), host.buffers, r.Base(), size)
}

func freeBuffer(b *llama.Buffer) uintptr {
	s := setOf(b.Type)
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.regions[b.Context]; r != nil {
		delete(s.regions, b.Context)
		s.bytes.Add(-int64(b.Size))
		_ = r.Free() // nothing can be done about addresses that do not come back
	}
	return 0
}

// view is n bytes of a tensor's data from off. The data lies in a region of the set, outside the Go heap.
func view(t *llama.Tensor, off, n uintptr) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(t.Data, off)), n)
}

// setTensor reads the tensor's bytes from the file. The pointer the loader hands over is into its mapping, whose pages
// would be read one fault at a time; it is not followed, except for a tensor that no file has.
func setTensor(b *llama.Buffer, t *llama.Tensor, data, off, size uintptr) uintptr {
	s := setOf(b.Type)
	if s == nil || size == 0 {
		return 0
	}
	name := t.NameString()
	p, ok := s.places[name]
	if !ok {
		copy(view(t, off, size), unsafe.Slice((*byte)(llama.Pointer(data)), size))
		return 0
	}
	if int64(off+size) > p.Size {
		s.fail(fmt.Errorf("%s: the tensor %s is asked for %d bytes and has %d", s.files[p.File].Path(), name, off+size, p.Size))
		return 0
	}
	if err := s.read(view(t, off, size), s.files[p.File], p.Offset+int64(off)); err != nil {
		s.fail(err)
	}
	return 0
}

// read fills to from the file, in chunks on several lanes.
func (s *Set) read(to []byte, f *storage.File, off int64) error {
	if f.Align() == 1 {
		_, err := f.ReadAt(to, off)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return err
	}
	align := int64(f.Align())
	var g errgroup.Group
	g.SetLimit(s.lanes)
	end := off + int64(len(to))
	for at := off &^ (align - 1); at < end; at += chunk {
		g.Go(func() error {
			r, err := s.takeBounce(chunk)
			if err != nil {
				return err
			}
			defer s.giveBounce(r)
			last := min(at+chunk, (end+align-1)&^(align-1))
			n, err := f.ReadAt(r.Bytes()[:last-at], at)
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			from, until := max(at, off), min(at+int64(n), end)
			if until < min(last, end) {
				return fmt.Errorf("%s: %w at %d", f.Path(), io.ErrUnexpectedEOF, at+int64(n))
			}
			copy(to[from-off:until-off], r.Bytes()[from-at:until-at])
			return nil
		})
	}
	return g.Wait()
}

// takeBounce is memory that a direct read may fill, giveBounce returns it.
func (s *Set) takeBounce(n int) (*pages.Region, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.bounces) - 1; last >= 0 {
		r := s.bounces[last]
		s.bounces = s.bounces[:last]
		return r, nil
	}
	return pages.Alloc(n)
}

func (s *Set) giveBounce(r *pages.Region) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bounces = append(s.bounces, r)
}

func getTensor(_ *llama.Buffer, t *llama.Tensor, data, off, size uintptr) uintptr {
	copy(unsafe.Slice((*byte)(llama.Pointer(data)), size), view(t, off, size))
	return 0
}

func memsetTensor(_ *llama.Buffer, t *llama.Tensor, value, off, size uintptr) uintptr {
	fill(view(t, off, size), byte(value))
	return 0
}

func clearBuffer(b *llama.Buffer, value uintptr) uintptr {
	fill(unsafe.Slice((*byte)(llama.Pointer(b.Context)), b.Size), byte(value))
	return 0
}

func fill(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

func (s *Set) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}
