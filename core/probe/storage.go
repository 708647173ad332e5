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
	sampleTime  = 100 * time.Millisecond
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

// Unread is what is known of a drive that was not read: nothing, and why.
func Unread(why string) machine.Storage {
	return machine.Storage{
		Direct: machine.Unknown[bool](why), Align: machine.Unknown[int64](why), From: why,
		Refault:           machine.Unknown[float64](why),
		MappingSerialises: machine.Unknown[bool]("not looked for: it takes an instrument of its own"),
	}
}

// Storage measures, in about a second, the drive that a model's experts are on: how fast reads of around a slice's size
// are, by lanes, and scattered reads of one page. It reads path, the model's shard with most experts, the way a run does:
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
		d := drive{file: f}
		if !f.Direct() {
			// What the cache holds says nothing about the drive. A system that drops nothing answers as it will answer a run.
			_ = f.Advise(storage.Random)
			d.forget = func() { _ = storage.DropCache(path) }
		}
		found := d.measure(ctx, m, int64(pages.Size()), tell)
		switch {
		case f.Direct():
			found.Direct = machine.Yes(f.Why())
			found.Align = machine.Known(int64(f.Align()), "reads of such blocks were compared with ordinary ones")
		case direct:
			found.Direct = machine.No(f.Why())
			found.Align = machine.Unknown[int64]("ordinary reads need none")
		}
		return found
	})
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
}

// drive is what is measured.
type drive struct {
	file   file
	forget func()   // takes the file out of the system's cache before a sample; nil where reads go past that
	memory [][]byte // that each lane reads into
}

// point is reads of one size on some lanes, and the rates they reached.
type point struct {
	places *places
	lanes  int
	limit  time.Duration
	rates  []float64 // bytes per second
}

// measure takes all samples, the repeats of a point apart from each other, since what disturbs one disturbs its neighbour.
func (d *drive) measure(ctx context.Context, m *model.Profile, page int64, tell func(float64)) machine.Storage {
	slice, align := m.SliceSize(), int64(d.file.Align())
	if slice == 0 {
		return Unread("the model has no experts")
	}
	extents := experts(m)
	at := func(size int64) []*point {
		spots := spread(extents, size, align)
		var points []*point
		for _, lanes := range laneCounts {
			if spots.count >= int64(lanes) {
				points = append(points, &point{places: spots, lanes: lanes, limit: sampleTime})
			}
		}
		return points
	}
	curve := at(slice)
	if len(curve) == 0 {
		return Unread("the shard with most experts has none of the usual size")
	}
	lone := &point{places: spread(inside(extents, page), page, page), lanes: 1, limit: pageTime}
	pageUnread := ""
	switch {
	case align > page:
		pageUnread = fmt.Sprintf("a direct read takes %d bytes and a page has %d", align, page)
	case lone.places.count == 0:
		pageUnread = "the experts fill no page"
	}

	warm := *curve[0]
	warm.limit = warmTime
	order := []*point{&warm}
	for range repeats {
		order = append(order, curve...)
		if pageUnread == "" {
			order = append(order, lone)
		}
	}
	for _, size := range []int64{slice / 2, slice * 2} {
		if size == 0 || size > slice && int64(slices.Max(laneCounts))*size > mostHeld {
			continue
		}
		for _, p := range at(size) {
			p.limit = aroundTime
			curve, order = append(curve, p), append(order, p)
		}
	}

	var window int64
	for _, p := range order {
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
	for i, p := range order {
		if time.Since(begin) > enough {
			break
		}
		rate, err := d.sample(ctx, p)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return Unread(err.Error())
		}
		p.rates = append(p.rates, rate)
		tell(float64(i+1) / float64(len(order)))
	}

	how := "direct"
	if !d.file.Direct() {
		how = "ordinary"
	}
	found := Unread("not asked for")
	found.From = fmt.Sprintf("%s reads at random places among the experts, the median of %d, in %.1f s", how, repeats, time.Since(begin).Seconds())
	for _, p := range curve {
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
	found.Refault = machine.Unknown[float64](cmp.Or(pageUnread, found.From))
	if len(lone.rates) > 0 {
		rate, _ := median(lone.rates)
		found.Refault = machine.Known(rate, fmt.Sprintf("%s reads of %d bytes at random places among the experts, one at a time", how, page))
	}
	return found
}

// median is the middle of the rates, of two middle ones the slower, and the fastest over the slowest, or 0 of a single one.
func median(rates []float64) (middle, differ float64) {
	slices.Sort(rates)
	if len(rates) > 1 {
		differ = rates[len(rates)-1] / rates[0]
	}
	return rates[(len(rates)-1)/2], differ
}

// sample reads at places not read before, as long as there are any, and returns the bytes per second. Every lane reads at
// least once. Only the bytes that were wanted count, not the rest of their blocks.
func (d *drive) sample(ctx context.Context, p *point) (float64, error) {
	if d.forget != nil {
		d.forget()
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
		return fmt.Errorf("the file has %d bytes now and ends before the experts at %d", d.file.Size(), off)
	}
	return err
}
