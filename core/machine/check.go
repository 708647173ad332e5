package machine

import (
	"fmt"
	"strings"
)

// Check refuses a profile that contradicts itself or states what cannot be. The error is one line.
func (p *Profile) Check() error {
	checks := []error{
		size("memory.total", p.Memory.Total, 1), size("memory.available", p.Memory.Available, 0),
		size("memory.keepable", p.Memory.Keepable, 0), size("memory.idle_anonymous", p.Memory.IdleAnonymous, 0),
		size("memory.exempt_total", p.Memory.ExemptTotal, 0), size("memory.lock_in_place", p.Memory.LockInPlace, 0),
		size("memory.page_size", p.Memory.PageSize, 1),
		atMost("memory.available", p.Memory.Available, "memory.total", p.Memory.Total),
		atMost("memory.keepable", p.Memory.Keepable, "memory.total", p.Memory.Total),
		atMost("memory.idle_anonymous", p.Memory.IdleAnonymous, "memory.total", p.Memory.Total),
		atMost("memory.exempt_total", p.Memory.ExemptTotal, "memory.total", p.Memory.Total),
		atMost("memory.lock_in_place", p.Memory.LockInPlace, "memory.total", p.Memory.Total),
		number("memory.compressor_ratio", p.Memory.CompressorRatio, 1),
		pressure(p.Memory.Pressure), stores(p.Memory),
		positive("cores.read_rate", p.Cores.ReadRate), positive("cores.wide_rate", p.Cores.WideRate),
		cores(p.Cores), backends(p.Backends), storage(p.Storage), devices(p.Devices),
	}
	for _, err := range checks {
		if err != nil {
			return err
		}
	}
	return nil
}

// largest is more bytes than any machine has, and few enough to add up.
const largest = 1 << 50

func size(name string, f Fact[int64], least int64) error {
	switch v, ok := f.Get(); {
	case ok && v < least:
		return fmt.Errorf("%s is %d, and the least it can be is %d", name, v, least)
	case ok && v > largest:
		return fmt.Errorf("%s is %d, and the most it can be is %d", name, v, int64(largest))
	}
	return nil
}

func atMost(name string, f Fact[int64], limitName string, limit Fact[int64]) error {
	v, ok := f.Get()
	l, limited := limit.Get()
	if ok && limited && v > l {
		return fmt.Errorf("%s is %d, more than %s, which is %d", name, v, limitName, l)
	}
	return nil
}

// What no ratio, error or price exceeds, and what no rate does: with them no sum or quotient of facts leaves the numbers.
const (
	greatest = 1e9
	fastest  = 1e18
)

func number(name string, f Fact[float64], least float64) error {
	if v, ok := f.Get(); ok && !(v >= least && v <= greatest) {
		return fmt.Errorf("%s is %g, and it can be %g to %g", name, v, least, greatest)
	}
	return nil
}

func positive(name string, f Fact[float64]) error {
	switch v, ok := f.Get(); {
	case ok && !(v > 0):
		return fmt.Errorf("%s is %g: what was not measured is null", name, v)
	case ok && !(v >= 1/greatest && v <= fastest):
		return fmt.Errorf("%s is %g, which nothing is", name, v)
	}
	return nil
}

func pressure(f Fact[Pressure]) error {
	switch v, ok := f.Get(); {
	case !ok, v == Compresses, v == Swaps, v == Kills:
		return nil
	default:
		return fmt.Errorf("memory.pressure is %q, which is none of %s, %s and %s", v, Compresses, Swaps, Kills)
	}
}

func stores(m Memory) error {
	if total, ok := m.ExemptTotal.Get(); ok && total > 0 && IsNo(m.ExemptStore) {
		return fmt.Errorf("memory.exempt_total is %d, yet memory.exempt_store says there is no such store", total)
	}
	return nil
}

func cores(c Cores) error {
	physical, known := c.Physical.Get()
	if known && physical < 1 {
		return fmt.Errorf("cores.physical is %d, and something read this", physical)
	}
	for i, class := range c.Classes {
		if class.Count < 1 || class.Frequency < 0 {
			return fmt.Errorf("cores.classes: class %d has %d cores at %d Hz", i, class.Count, class.Frequency)
		}
		if i > 0 && class.Frequency > c.Classes[i-1].Frequency {
			return fmt.Errorf("cores.classes: class %d is faster than the one before it, and the fastest comes first", i)
		}
	}
	return nil
}

func backends(b Backends) error {
	for name, f := range map[string]Fact[int]{"linked": b.Linked, "loaded": b.Loaded} {
		if v, ok := f.Get(); ok && v < 0 {
			return fmt.Errorf("backends.%s is %d", name, v)
		}
	}
	return nil
}

func storage(s Storage) error {
	if err := size("storage.align", s.Align, 1); err != nil {
		return err
	}
	if align, ok := s.Align.Get(); ok && align&(align-1) != 0 {
		return fmt.Errorf("storage.align is %d, which is no power of two", align)
	}
	for name, f := range map[string]Fact[float64]{"refault": s.Refault, "mapped_rate": s.MappedRate,
		"unmapped_rate": s.UnmappedRate, "overlap_gain": s.OverlapGain} {
		if err := positive("storage."+name, f); err != nil {
			return err
		}
	}
	type point struct {
		size  int64
		lanes int
	}
	seen := map[point]bool{}
	for _, r := range s.Curve {
		switch p := (point{r.Size, r.Lanes}); {
		case r.Size < 1 || r.Size > largest || r.Lanes < 1 || !(r.Rate >= 1/greatest && r.Rate <= fastest):
			return fmt.Errorf("storage.curve has a point of %d bytes on %d lanes at %g bytes per second", r.Size, r.Lanes, r.Rate)
		case !(r.Spread == 0 || r.Spread >= 1 && r.Spread <= greatest):
			return fmt.Errorf("storage.curve has a spread of %g, and fastest over slowest is at least 1", r.Spread)
		case seen[p]:
			return fmt.Errorf("storage.curve has two points of %d bytes on %d lanes", r.Size, r.Lanes)
		default:
			seen[p] = true
		}
	}
	return nil
}

func devices(all []Device) error {
	seen := map[string]bool{}
	for _, d := range all {
		if d.Name == "" {
			return fmt.Errorf("devices: one has no name")
		}
		if strings.ContainsAny(d.Name, ",=") {
			return fmt.Errorf("devices: no run can list one named %q", d.Name)
		}
		if seen[d.Name] {
			return fmt.Errorf("devices: two are named %q", d.Name)
		}
		seen[d.Name] = true
		at := "device " + d.Name + ": "
		for _, err := range []error{
			size(at+"total", d.Total, 0), size(at+"free", d.Free, 0), atMost(at+"free", d.Free, "total", d.Total),
			positive(at+"read_rate", d.ReadRate), positive(at+"wide_rate", d.WideRate),
			number(at+"read_error", d.ReadError, 0), number(at+"wide_error", d.WideError, 0),
			number(at+"crossing", d.Crossing, 0),
		} {
			if err != nil {
				return err
			}
		}
	}
	return nil
}
