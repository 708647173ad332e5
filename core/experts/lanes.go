package experts

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// A slice that is waited for is read in up to maxParts requests of at least partBytes: the drive is as busy as with as many
// slices at a time, and the first of them is there sooner.
const (
	maxParts  = 4
	partBytes = 256 << 10 // a multiple of every drive's block
)

// job is one read: n bytes of a file at off into the slot's memory at to.
type job struct {
	class *class
	slot  int32
	file  int32
	off   int64
	to, n int64
	need  int64 // bytes that must arrive; the rest of the last block may lie past the end of the file
}

// read says that a slot's last part has arrived, or failed.
type read struct {
	class *class
	slot  int32
}

// lane reads what comes until the jobs end.
func (s *Store) lane() {
	defer s.lanes.Done()
	for j := range s.jobs {
		v := &j.class.slots[j.slot]
		if !v.claim.CompareAndSwap(queued, claimed) && v.claim.Load() == withdrawn {
			v.parts.Add(-1) // a guess has one part
			s.done <- read{j.class, j.slot}
			continue
		}
		f := s.cfg.Files[j.file]
		got, err := f.ReadAt(j.class.mem[j.to:j.to+j.n], j.off)
		if int64(got) < j.need {
			if err == nil || errors.Is(err, io.EOF) {
				err = fmt.Errorf("%s: %w at %d: the file is shorter than its list of tensors says", f.Path(), io.ErrUnexpectedEOF, j.off+int64(got))
			}
			v.failed.Store(&err)
		}
		if v.parts.Add(-1) == 0 {
			s.done <- read{j.class, j.slot}
		}
	}
}

// fetch starts the reads that fill a slot with its slice, in as many parts as given.
func (s *Store) fetch(t int32, i int32, parts int) {
	e := &s.tensors[t]
	c := e.class
	v := &c.slots[i]
	f := s.cfg.Files[e.File]
	align := int64(f.Align())
	off := e.Offset + int64(v.expert)*e.Slice
	lo := off &^ (align - 1)
	hi := (off + e.Slice + align - 1) &^ (align - 1)
	to := int64(i)*c.stride + off%s.align - (off - lo)

	parts = max(1, min(parts, maxParts, int((hi-lo)/partBytes)))
	step := ((hi-lo)/int64(parts) + s.align - 1) &^ (s.align - 1)
	n := int32((hi - lo + step - 1) / step)
	v.state = reading
	v.failed.Store(nil)
	v.parts.Store(n)
	s.inflight++
	s.stats.ReadBytes += e.Slice
	for at := lo; at < hi; at += step {
		end := min(at+step, hi)
		s.jobs <- job{c, i, int32(e.File), at, to + at - lo, end - at, min(end, off+e.Slice) - at}
	}
}

// arrived books a finished read. It is false where the read failed, which fails the graph.
func (s *Store) arrived(r read) bool {
	s.inflight--
	v := &r.class.slots[r.slot]
	if v.claim.Load() == withdrawn {
		v.claim.Store(claimed)
		s.forget(r.class, r.slot)
		return true
	}
	if err := v.failed.Load(); err != nil {
		s.err = *err
		s.forget(r.class, r.slot)
		return false
	}
	v.state = ready
	return true
}

// drain books the reads that have finished by now.
func (s *Store) drain() bool {
	ok := true
	for {
		select {
		case r := <-s.done:
			ok = s.arrived(r) && ok
		default:
			return ok
		}
	}
}

// await waits for one read, and books all that have finished. It is false when one failed or the run was aborted.
func (s *Store) await() bool {
	if s.inflight == 0 {
		return s.drain()
	}
	start := time.Now()
	defer func() { s.stats.Wait += time.Since(start) }()
	for {
		select {
		case r := <-s.done:
			return s.arrived(r) && s.drain()
		case <-s.wake:
			if s.abort.Load() {
				return false
			}
		}
	}
}

// Recover forgets a failed read, so that the next graph is computed anew: a drive that failed once may answer again. What is
// still being read is waited for, and its slots hold nothing.
func (s *Store) Recover() {
	for s.inflight > 0 {
		s.arrived(<-s.done)
	}
	s.err = nil
}
