package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/platform/pages"
	"github.com/bmoe/bmoe/platform/storage"
)

// A sample ends when it has read so many bytes or, on a drive too slow for that, after so long. Bytes come first: a sample
// of few requests is over in no time on a fast drive and tells how busy the system was.
const (
	sampleBytes = 512 << 20
	sampleReads = 1 << 14 // the same for the smallest reads
	sampleTime  = 80 * time.Millisecond
	pageTime    = 30 * time.Millisecond
	aroundTime  = 25 * time.Millisecond
	warmTime    = 20 * time.Millisecond // of the first sample, which counts for nothing: it wakes the drive
)

const (
	repeats  = 3                // of every sample that decides something
	enough   = 3 * time.Second  // after which no further sample begins
	patience = 10 * time.Second // after which a drive that still has not answered is given up
	mostHeld = 64 << 20         // bytes of memory that reads larger than a slice may take
)

// laneCounts are the lanes that are tried.
var laneCounts = []int{1, 2, 4}

// quiet is the fastest over the slowest repeat up to which a drive counts as quiet. slows is how much faster every point of
// the slice's size was in its first repeat than in its last where a drive reads fast only for a while; falls is how much
// slower reads must be with a mapping alive to be called slowed by it.
const (
	quiet = 1.1
	slows = 1.25
	falls = 1.1
)

// Unread is what is known of a drive that was not read: nothing, and why.
func Unread(why string) machine.Storage {
	return machine.Storage{
		Direct: machine.Unknown[bool](why), Align: machine.Unknown[int64](why), From: why,
		Refault:           machine.Unknown[float64](why),
		MappingSerialises: machine.Unknown[bool](why),
		MappedRate:        machine.Unknown[float64](why), UnmappedRate: machine.Unknown[float64](why),
	}
}

// Storage measures, in about a second, the drive that a model's experts are on: how fast reads of around a slice's size
// are, by lanes, scattered reads of one page, and whether reads are slower while the file is mapped. It reads path, the model's shard with most experts, the way a run does:
// past the file cache if direct is asked for and works there. Where reads fail or the drive does not answer, the facts are
// unknown and say why. The only error is that of ctx, which ends the probe whatever the drive does. tell is given how
// much of the probe is done, 0 to 1.
func Storage(ctx context.Context, path string, m *model.Profile, direct bool, tell func(float64)) (machine.Storage, error) {
	return answered(ctx, func(ctx context.Context) machine.Storage {
		f, err := storage.Open(path, direct)
		if err != nil {
			return Unread(err.Error())
		}
		defer func() { _ = f.Close() }()
		d := drive{file: f, hold: func() (io.Closer, error) { return storage.Map(path) }}
		if !f.Direct() {
			// What the cache holds says nothing about the drive. A system that drops nothing answers as it will answer a run.
			_ = f.Advise(storage.Random)
			d.forget = func() { _ = storage.DropCache(path) }
		}
		found := d.measure(ctx, m, int64(pages.Size()), tell)
		switch {
		case f.Direct():
			found.Direct = machine.Yes(f.Why())
			found.Align = alignment(f)
		case direct:
			found.Direct = machine.No(f.Why())
			found.Align = machine.Unknown[int64]("ordinary reads need none")
		}
		return found
	})
}

// alignment is what the system states of f's direct reads. What stands in where it states nothing is no fact of the machine.
func alignment(f *storage.File) machine.Fact[int64] {
	from, stated := f.AlignFrom()
	if !stated {
		return machine.Unknown[int64](fmt.Sprintf("%s: blocks of %d are read", from, f.Align()))
	}
	return machine.Known(int64(f.Align()), from)
}

// answered runs a probe that may hang in the drive, and waits no longer than ctx and patience allow. What is left behind
// ends with its read.
func answered(ctx context.Context, probe func(context.Context) machine.Storage) (machine.Storage, error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	done := make(chan machine.Storage, 1)
	go func() { done <- probe(limited) }()
	select {
	case found := <-done:
		return found, ctx.Err()
	case <-limited.Done():
		return Unread(fmt.Sprintf("the drive did not answer within %.0f s", patience.Seconds())), ctx.Err()
	}
}

// file is a storage.File, as far as a drive is measured by it.
type file interface {
	ReadAt(p []byte, off int64) (int, error)
	Direct() bool
	Align() int
	Size() int64
	Path() string
}

// drive is what is measured.
type drive struct {
	file   file
	hold   func() (io.Closer, error) // maps the file, which stays so until it is closed
	forget func()                    // takes the file out of the system's cache before a sample; nil where reads go past that
	memory [][]byte                  // that each lane reads into
}

// point is reads of one size on some lanes, and the rates they reached.
type point struct {
	places *places
	lanes  int
	limit  time.Duration
	mapped bool      // the file is mapped meanwhile
	rates  []float64 // bytes per second, in the order they were taken
}

// samples are what a drive is measured by.
type samples struct {
	slice  []*point // reads of the model's slices, which decide
	around []*point // the same of half their size and twice
	page   *point   // scattered pages
	mapped *point   // the last of slice with the file mapped

	noPage, noMapped string // why those are not taken; "" where they are

	order []*point
}

// lay lays the samples out, the repeats of a point apart from each other, since what disturbs one disturbs its neighbour. The
// error says why there is nothing to measure.
func (d *drive) lay(m *model.Profile, page int64) (*samples, error) {
	slice, align := m.SliceSize(), int64(d.file.Align())
	if slice == 0 {
		return nil, errors.New("the model has no experts")
	}
	extents := experts(m)
	at := func(size int64, limit time.Duration) (points []*point) {
		spots := spread(extents, size, align)
		for _, lanes := range laneCounts {
			if spots.count >= int64(lanes) {
				points = append(points, &point{places: spots, lanes: lanes, limit: limit})
			}
		}
		return points
	}
	s := &samples{slice: at(slice, sampleTime)}
	if len(s.slice) == 0 {
		return nil, errors.New("the shard with most experts has none of the usual size")
	}
	most := len(s.slice) - 1
	s.mapped = &point{places: s.slice[most].places, lanes: s.slice[most].lanes, limit: sampleTime, mapped: true}
	switch {
	case !d.file.Direct():
		s.noMapped = "only reads past the system's file cache are slowed by one"
	case s.mapped.lanes == 1:
		s.noMapped = "the experts are too few to be read several at a time"
	}
	s.page = &point{places: spread(inside(extents, page), page, page), lanes: 1, limit: pageTime}
	switch {
	case align > page:
		s.noPage = fmt.Sprintf("a direct read takes %d bytes and a page has %d", align, page)
	case s.page.places.count == 0:
		s.noPage = "the experts fill no page"
	}

	warm := *s.slice[0]
	warm.limit = warmTime
	s.order = []*point{&warm}
	for i := range repeats {
		s.order = append(s.order, s.slice...)
		if s.noMapped == "" {
			// By turns after the reads that it is held against and before them: a drive that slows down favours neither.
			s.order = slices.Insert(s.order, len(s.order)-i%2, s.mapped)
		}
		if s.noPage == "" {
			s.order = append(s.order, s.page)
		}
	}
	for _, size := range []int64{slice / 2, slice * 2} {
		if size > 0 && (size < slice || int64(slices.Max(laneCounts))*size <= mostHeld) {
			s.around = append(s.around, at(size, aroundTime)...)
		}
	}
	s.order = append(s.order, s.around...)
	return s, nil
}

// measure takes all samples.
func (d *drive) measure(ctx context.Context, m *model.Profile, page int64, tell func(float64)) machine.Storage {
	s, err := d.lay(m, page)
	if err != nil {
		return Unread(err.Error())
	}
	var window int64
	for _, p := range s.order {
		window = max(window, p.places.window)
	}
	region, err := pages.Alloc(int(max(window*int64(slices.Max(laneCounts)), pages.HugeSize)))
	if err != nil {
		return Unread(err.Error())
	}
	defer func() { _ = region.Free() }()
	clear(region.Bytes()) // no sample waits for memory
	d.memory = slices.Collect(slices.Chunk(region.Bytes(), int(window)))

	begin := time.Now()
	for i, p := range s.order {
		if time.Since(begin) > enough {
			break
		}
		if p.mapped && s.noMapped != "" {
			continue
		}
		rate, err := d.sample(ctx, p)
		if ctx.Err() != nil {
			break
		}
		var unmapped *mapError
		switch {
		case errors.As(err, &unmapped):
			s.noMapped = err.Error()
		case err != nil:
			return Unread(err.Error())
		default:
			p.rates = append(p.rates, rate)
		}
		tell(float64(i+1) / float64(len(s.order)))
	}
	how := "direct"
	if !d.file.Direct() {
		how = "ordinary"
	}
	return s.found(how, time.Since(begin))
}

// found are the facts that the samples give.
func (s *samples) found(how string, took time.Duration) machine.Storage {
	found := Unread("not asked for")
	found.From = fmt.Sprintf("%s reads at random places among the experts, the median of %d, in %.1f s%s", how, repeats, took.Seconds(), s.unsteady())
	for _, p := range slices.Concat(s.slice, s.around) {
		if len(p.rates) > 0 {
			rate, differ := median(p.rates)
			found.Curve = append(found.Curve, machine.Rate{Size: p.places.size, Lanes: p.lanes, Rate: rate, Spread: differ})
		}
	}
	if len(found.Curve) == 0 {
		found.From = fmt.Sprintf("the drive is too slow to be measured in %.0f s", enough.Seconds())
	}
	slices.SortFunc(found.Curve, func(a, b machine.Rate) int {
		return cmp.Or(cmp.Compare(a.Size, b.Size), cmp.Compare(a.Lanes, b.Lanes))
	})
	found.Refault = machine.Unknown[float64](cmp.Or(s.noPage, found.From))
	if len(s.page.rates) > 0 {
		rate, _ := median(s.page.rates)
		found.Refault = machine.Known(rate, fmt.Sprintf("%s reads of %d bytes at random places among the experts, one at a time", how, s.page.places.size))
	}
	found.MappingSerialises, found.MappedRate, found.UnmappedRate = s.serialises()
	return found
}

// serialises compares reads with the file mapped and without. It says yes where the fastest of the one kind is clearly slower
// than the slowest of the other, and never no: it does not read as a run does, and has missed a mapping that cost one much.
func (s *samples) serialises() (yes machine.Fact[bool], with, without machine.Fact[float64]) {
	unmapped := s.slice[len(s.slice)-1]
	if s.noMapped == "" && min(len(s.mapped.rates), len(unmapped.rates)) < repeats {
		s.noMapped = fmt.Sprintf("the drive is too slow to be read often enough in %.0f s", enough.Seconds())
	}
	if s.noMapped != "" {
		return machine.Unknown[bool](s.noMapped), machine.Unknown[float64](s.noMapped), machine.Unknown[float64](s.noMapped)
	}
	from := fmt.Sprintf("reads of %d bytes, %d at a time, the median of %d", unmapped.places.size, unmapped.lanes, repeats)
	a, _ := median(s.mapped.rates)
	b, _ := median(unmapped.rates)
	with, without = machine.Known(a, from+" with the file mapped"), machine.Known(b, from+" in turns with those")
	if slices.Min(unmapped.rates) < falls*slices.Max(s.mapped.rates) {
		return machine.Unknown[bool]("such reads were not seen to be slower with the file mapped, which is no evidence that a run's are not: --release-mmap on and off would tell"), with, without
	}
	return machine.Yes(fmt.Sprintf("each of %d samples with the file mapped was slower than each without", repeats)), with, without
}

// unsteady says, after what the rates are from, that the drive is not quiet; "" where it is.
func (s *samples) unsteady() string {
	var widest float64
	bursts := true
	for _, p := range s.slice {
		_, differ := median(p.rates)
		widest = max(widest, differ)
		bursts = bursts && len(p.rates) == repeats && p.rates[0] >= slows*p.rates[repeats-1]
	}
	switch {
	case bursts:
		return fmt.Sprintf("; repeats differ up to %.2f times and all get slower, as of a drive that is fast in bursts", widest)
	case widest > quiet:
		return fmt.Sprintf("; repeats differ up to %.2f times, so the drive is not quiet", widest)
	}
	return ""
}

// median is the middle of the rates, of two middle ones the slower, and the fastest over the slowest, or 0 of a single one.
func median(rates []float64) (middle, differ float64) {
	if len(rates) == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(rates))
	if len(sorted) > 1 {
		differ = sorted[len(sorted)-1] / sorted[0]
	}
	return sorted[(len(sorted)-1)/2], differ
}

// mapError is of a file that cannot be mapped, which spoils nothing but the samples that would have it so.
type mapError struct{ error }

func (e *mapError) Unwrap() error { return e.error }

// sample reads at places not read before, as long as there are any, and returns the bytes per second. Every lane reads at
// least once. Only the bytes that were wanted count, not the rest of their blocks.
func (d *drive) sample(ctx context.Context, p *point) (float64, error) {
	if d.forget != nil {
		d.forget()
	}
	if p.mapped {
		held, err := d.hold()
		if err != nil {
			return 0, &mapError{err}
		}
		defer func() { _ = held.Close() }() // where it stays mapped nothing is lost but room for addresses
	}
	offsets := p.places.deal(max(int64(p.lanes), min(sampleReads, sampleBytes/p.places.size)))
	var next, reads atomic.Int64
	var failed atomic.Pointer[error]
	var lanes sync.WaitGroup
	begin := time.Now()
	for lane := range p.lanes {
		lanes.Go(func() {
			for first := true; first || time.Since(begin) < p.limit; first = false {
				i := next.Add(1) - 1
				if i >= int64(len(offsets)) || failed.Load() != nil || ctx.Err() != nil {
					return
				}
				if err := d.read(d.memory[lane][:p.places.window], offsets[i]); err != nil {
					failed.CompareAndSwap(nil, &err)
					return
				}
				reads.Add(1)
			}
		})
	}
	lanes.Wait()
	took := max(time.Since(begin), 1)
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(reads.Load()*p.places.size) / took.Seconds(), nil
}

// read fills p, all but what lies past the end of the file: no more than the rest of a last block.
func (d *drive) read(p []byte, off int64) error {
	n, err := d.file.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		if len(p)-n < d.file.Align() {
			return nil
		}
		return fmt.Errorf("%s has %d bytes now and ends before the experts at %d", d.file.Path(), d.file.Size(), off)
	}
	return err
}
