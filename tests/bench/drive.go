package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/platform/pages"
	"github.com/bmoe/bmoe/platform/storage"
)

// drive reads random expert slices of a model past the page cache, with each number of lanes for some time. A slice is one
// request, and arrives in memory that is used over and over: the best that the drive does.
type drive struct {
	Model string
	Lanes []int
	Each  time.Duration
}

// place is where a slice is.
type place struct {
	file   *storage.File
	offset int64
}

func (d drive) run() (outcome, error) {
	profile, err := model.Read(d.Model)
	if err != nil {
		return outcome{}, err
	}
	slice := profile.SliceSize()
	if slice == 0 {
		return outcome{}, fmt.Errorf("%s has no experts", d.Model)
	}
	files := make([]*storage.File, len(profile.Shards))
	for i, shard := range profile.Shards {
		f, err := storage.Open(filepath.Join(filepath.Dir(d.Model), shard.Name), true)
		if err != nil {
			return outcome{}, err
		}
		defer func() { _ = f.Close() }()
		if !f.Direct() {
			return outcome{}, fmt.Errorf("the drive can't be measured: %s", f.Why())
		}
		files[i] = f
	}
	var places []place
	for t := range profile.Experts() {
		for n := range t.Slices() {
			if t.SliceBytes() == slice {
				places = append(places, place{files[t.Shard], t.Offset + int64(n)*slice})
			}
		}
	}
	var o outcome
	for _, lanes := range d.Lanes {
		bytes, elapsed, err := read(places, slice, lanes, d.Each)
		if err != nil {
			return outcome{}, err
		}
		o.Rates = append(o.Rates, rate{lanes, float64(bytes) / elapsed.Seconds()})
	}
	return o, nil
}

// read lets each lane read slices at random places until the time is over. It counts the bytes of the slices alone, not what
// their blocks have besides.
func read(places []place, slice int64, lanes int, during time.Duration) (bytes int64, elapsed time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), during)
	defer cancel()
	var total atomic.Int64
	var group errgroup.Group
	start := time.Now()
	for range lanes {
		group.Go(func() error {
			var align int64
			for _, p := range places {
				align = max(align, int64(p.file.Align()))
			}
			region, err := pages.Alloc(int(slice + 2*align))
			if err != nil {
				return err
			}
			defer func() { _ = region.Free() }()
			for ctx.Err() == nil {
				p := places[rand.IntN(len(places))]
				align := int64(p.file.Align())
				from := p.offset &^ (align - 1)
				to := (p.offset + slice + align - 1) &^ (align - 1)
				if _, err := p.file.ReadAt(region.Bytes()[:to-from], from); err != nil && !errors.Is(err, io.EOF) {
					return err
				}
				total.Add(slice)
			}
			return nil
		})
	}
	err = group.Wait()
	return total.Load(), time.Since(start), err
}

// best is the highest rate, in bytes per second.
func best(rates []rate) float64 {
	var most float64
	for _, r := range rates {
		most = max(most, r.PerSecond)
	}
	return most
}
