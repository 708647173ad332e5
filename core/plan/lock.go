package plan

import "math"

// lock is what becomes of the cache's protection from reclaim.
type lock int

const (
	lockNone    lock = iota // ordinary memory
	lockGranted             // sized to what may be locked
	lockAsked               // the ceiling is not known: asked for at run time, counted as nothing
)

// prepareLock finds what of a cache could be locked where it is, the dense set and a device that wires its buffers taken off
// first. A ceiling that was not measured is not one of zero: what other bounds say still holds.
func (a *allocation) prepareLock() {
	s := a.state
	a.lockable = math.MaxInt64
	if s.exempt.lockKnown {
		a.lockable = s.exempt.lock
	}
	if s.exempt.totalKnown {
		left := a.exemptLeft
		if s.dense == pinned {
			left -= s.share.dense()
		}
		a.lockable = min(a.lockable, max(0, left))
	}
	switch {
	case !s.Session.LocksCache, s.byHand("cache-pin") && !s.set.Bool("cache-pin"), a.lockable < a.floor():
		a.lock = lockNone
	case s.exempt.lockKnown:
		a.lock = lockGranted
	default:
		a.lock = lockAsked
	}
}

// cacheCap is the most a cache may take: where it can be locked it is sized to that, since a byte past it is one the machine
// is free to take back.
func (a *allocation) cacheCap() int64 {
	if a.lock == lockGranted {
		return floorMiB(a.lockable)
	}
	return math.MaxInt64
}

// settleLock drops a protection that nothing came of.
func (a *allocation) settleLock() {
	if a.cache == 0 {
		a.lock = lockNone
	}
}

// cacheExempt is what of the cache is charged to the second ceiling.
func (a *allocation) cacheExempt() int64 {
	if a.lock == lockGranted {
		return min(a.cache, a.lockable)
	}
	return 0
}

// sayLock decides the two knobs of locking.
func (s *state) sayLock() {
	a := &s.allocation
	f := &s.plan.Figures
	switch byHand := s.byHand("cache-mb"); {
	case a.cache == 0:
		s.decide("cache-pin", "off", Derived, "there is no cache to lock", "There is no cache to protect: it is 0 MiB")
		s.decide("cache-pin-fit", "off", Derived, "there is no cache to lock", "There is no cache to shrink: it is 0 MiB")
	case !s.Session.LocksCache:
		s.decide("cache-pin", "off", Derived, "this session does not lock its cache, which is ordinary memory at its full size", "The cache is ordinary memory")
		s.decide("cache-pin-fit", "off", Derived, "the cache is not sized to a lock", "The cache keeps its size, "+size(a.cache))
	case a.lock == lockNone && s.byHand("cache-pin"):
		s.decide("cache-pin", s.set.Text("cache-pin"), Operator, "", "")
		s.decide("cache-pin-fit", "off", Derived, "the cache is not sized to a lock", "The cache keeps its size, "+size(a.cache))
	case a.lock == lockNone:
		s.decide("cache-pin", "off", Derived, "what may be locked in place, "+size(a.lockable)+", is less than one token cycle of "+
			size(s.share.cycle)+": the cache is ordinary memory at its full size",
			"The cache is ordinary memory: only "+size(a.lockable)+" could be protected")
		s.decide("cache-pin-fit", "off", Derived, "the cache is not sized to a lock", "The cache keeps its size, "+size(a.cache))
	case a.lock == lockAsked:
		s.decide("cache-pin", "on", Unprobed, "the ceiling of locking in place was not measured"+from(s.machine.Memory.LockInPlace.From())+
			" and no known bound rules out a token cycle: a lock is asked for at run time, and none is counted as granted",
			"The system is asked to protect the cache; how much it will is not known")
		s.decide("cache-pin-fit", onOff(!byHand), Unprobed, fitReason(byHand, "no lock was counted on"),
			"If the system protects less, the cache shrinks to that, to no less than "+size(a.floor()))
	default:
		f.CacheLocked = a.cacheExempt()
		s.note("cache-lock", size(f.CacheLocked), Measured, size(a.lockable)+" may be locked in place after what else is held so"+from(s.machine.Memory.LockInPlace.From())+
			", and "+size(f.CacheLocked)+" of the cache's "+size(a.cache)+" are counted on",
			size(f.CacheLocked)+" of the cache can be protected from the system")
		s.decide("cache-pin", "on", Measured, size(f.CacheLocked)+" can be locked", "The system may not take "+size(f.CacheLocked)+" of the cache back")
		s.decide("cache-pin-fit", onOff(!byHand), Derived, fitReason(byHand, "the cache was sized to the lock"),
			"If the system protects less, the cache shrinks to that, to no less than "+size(a.floor()))
	}
	f.Lockable = 0
	if a.lockable != math.MaxInt64 {
		f.Lockable = a.lockable
	}
	f.Floor = a.floor()
}

func fitReason(byHand bool, why string) string {
	if byHand {
		return "a size set by hand is never shrunk unasked"
	}
	return why + ": a refusal part way steps the cache down to what was granted"
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
