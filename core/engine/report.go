package engine

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/bmoe/bmoe/platform/process"
)

// samplePeriod is how often the memory held is looked at.
const samplePeriod = 50 * time.Millisecond

// Report is the session so far.
func (s *Session) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.report
	if s.dense != nil {
		r.DenseBytes = s.dense.Bytes()
	}
	return r
}

// mode is the one line that says how this session runs.
func (s *Session) mode() string {
	name := filepath.Base(s.cfg.Model)
	if !s.cfg.Stream {
		return fmt.Sprintf("plain llama.cpp: %s mapped, %d threads", name, s.cfg.Threads)
	}
	overlap, direct := "overlap", "direct"
	if !s.cfg.Overlap {
		overlap = "no overlap"
	}
	if !s.files[max(s.profile.ExpertShard(), 0)].Direct() {
		direct = "buffered"
	}
	cache := fmt.Sprintf("%d MiB of %d MiB experts cached", s.report.CacheBytes>>20, s.profile.ExpertBytes()>>20)
	if s.report.CacheBytes <= s.store.Smallest() {
		cache = fmt.Sprintf("no expert cache (%s of slots)", size(s.report.CacheBytes))
	}
	return fmt.Sprintf("streaming %s: %s, %d lanes, %s, %s reads, dense set %s, %d threads", name, cache, s.cfg.Lanes, overlap, direct, s.cfg.Dense, s.cfg.Threads)
}

// account adds what a Generate did.
func (s *Session) account(r Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	add := func(to *Phase, p Phase) {
		to.Tokens += p.Tokens
		to.Elapsed += p.Elapsed
		to.Cost = to.Cost.plus(p.Cost)
	}
	add(&s.report.Prefill, r.Prefill)
	add(&s.report.Decode, r.Decode)
}

// sample watches the memory the process holds until the session closes.
func (s *Session) sample() {
	s.sampler.stop = make(chan struct{})
	tick := time.NewTicker(samplePeriod)
	s.sampler.done.Go(func() {
		defer tick.Stop()
		for {
			if u, err := process.Read(); err == nil {
				s.mu.Lock()
				s.report.PeakHeld = max(s.report.PeakHeld, u.Anonymous, u.Locked) // what this process locks is anonymous
				s.report.PeakResident = max(s.report.PeakResident, u.PeakResident)
				s.mu.Unlock()
			}
			select {
			case <-s.sampler.stop:
				return
			case <-tick.C:
			}
		}
	})
}
