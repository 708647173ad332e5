package experts

import (
	"github.com/bmoe/bmoe/platform/pages"
)

// pinPiece is how much memory is asked to be locked at a time. A refusal is then asked again for half as much, down to a
// page, so that all that the system grants is taken.
const pinPiece = 32 << 20

// Pinned is what came of locking the slots in place.
type Pinned struct {
	Locked  int64 // bytes that the system may not take back
	Refused int64 // bytes of slots that it did not lock when it was asked to
	Shrunk  bool  // the slots that were refused were given back
	Why     error // of the first refusal
}

// Pin locks the slots in place, every class by the same share, so that a refusal part way leaves the same share of each. It
// is called between Allocate and the first graph.
//
// With fit, slots that the system refuses to lock are given back and the locked ones are the cache, down to no fewer bytes
// than floor. Without it, they stay as ordinary memory. A grant below floor is no lock worth having: all is ordinary memory
// again, at its full size.
func (s *Store) Pin(fit bool, floor int64) Pinned {
	p := s.lockSlots()
	switch {
	case p.Refused == 0:
		return p
	case p.Locked < floor:
		for _, c := range s.classes {
			_ = c.region.Unlock(0, len(c.mem)) // what stays locked is the run's own
			c.locked = 0
		}
		p.Locked = 0
	case fit:
		p.Shrunk = s.shrink(floor)
		p.Locked = s.lockedBytes()
	}
	return p
}

func (s *Store) lockedBytes() int64 {
	var n int64
	for _, c := range s.classes {
		n += c.locked
	}
	return n
}

// lockSlots locks as much as the system grants, share by share.
func (s *Store) lockSlots() Pinned {
	var p Pinned
	var all int64
	for _, c := range s.classes {
		all += int64(len(c.mem))
	}
	shares := max(1, (all+pinPiece-1)/pinPiece)
	for share := int64(1); share <= shares && p.Why == nil; share++ {
		for _, c := range s.classes {
			if p.Why = c.lockUpTo(s.lock, int64(len(c.mem))/shares*share, share == shares); p.Why != nil {
				break
			}
		}
	}
	p.Locked = s.lockedBytes()
	p.Refused = all - p.Locked
	return p
}

// lockUpTo locks the class's memory up to a byte, or to its end. Where the system refuses, it is asked for half as much until
// that is less than a page; the result is then its first refusal.
func (c *class) lockUpTo(lock func(r *pages.Region, off, n int) error, end int64, last bool) error {
	page := int64(pages.Size())
	end = end / page * page
	if last {
		end = int64(len(c.mem))
	}
	var refused error
	for piece := end - c.locked; piece > 0; piece = min(piece, end-c.locked) {
		err := lock(c.region, int(c.locked), int(piece))
		if err == nil {
			c.locked += piece
			continue
		}
		if refused == nil {
			refused = err
		}
		if piece <= page {
			break
		}
		piece = (piece/2 + page - 1) / page * page
	}
	return refused
}

// shrink gives back the slots that are not locked, but as many as floor asks for and slices need to pass through. It says
// whether there were any.
func (s *Store) shrink(floor int64) bool {
	var all int64
	for _, c := range s.classes {
		all += int64(len(c.mem))
	}
	shrunk := false
	for _, c := range s.classes {
		least := int64(float64(floor) * (float64(len(c.mem)) / float64(all)))
		keep := max(int(c.locked/c.stride), int((least+c.stride-1)/c.stride), min(s.few(), len(c.slots)))
		if keep >= len(c.slots) {
			continue
		}
		c.drop(keep)
		shrunk = true
	}
	return shrunk
}

// drop leaves the class its first slots and gives the memory of the others back. No slot holds a slice yet.
func (c *class) drop(keep int) {
	c.slots = c.slots[:keep]
	c.head, c.tail = -1, -1
	for i := range c.slots {
		c.pushFront(int32(i))
	}
	page := pages.Size()
	from := (keep*int(c.stride) + page - 1) / page * page
	if from < len(c.mem) {
		_ = c.region.Unlock(from, len(c.mem)-from)  // a part of the last slot may have been locked
		_ = c.region.Release(from, len(c.mem)-from) // what stays is only address space that is not touched again
		c.locked = min(c.locked, int64(from))
	}
	c.mem = c.mem[:keep*int(c.stride)]
}

// Bytes is what the slots and the copies of the routers hold.
func (s *Store) Bytes() int64 {
	var n int64
	for _, c := range s.classes {
		n += int64(len(c.mem))
	}
	if s.ahead.region != nil {
		n += int64(len(s.ahead.region.Bytes()))
	}
	return n
}
