package engine

import (
	"fmt"

	"github.com/bmoe/bmoe/core/gguf"
	"github.com/bmoe/bmoe/platform/memory"
	"github.com/bmoe/bmoe/platform/process"
)

// means is what memory the run has to itself. Sizes are bytes.
type means struct {
	free int64  // what it may hold beyond what it holds now
	all  int64  // what it may hold in all
	why  string // what decides that
}

// means asks the system now. Its error means that nobody knows.
func (s *Session) means() (means, error) {
	m, err := memory.Read()
	if err != nil {
		return means{}, err
	}
	u, err := process.Read()
	if err != nil {
		return means{}, err
	}
	have := means{m.Available, m.Available + u.Anonymous, m.Why}
	if limit := s.cfg.MemoryLimit; limit > 0 && limit < have.all {
		have = means{limit - u.Anonymous, limit, "the limit that was asked for"}
	}
	return have, nil
}

func (m means) String() string {
	return fmt.Sprintf("%s of %s (%s)", size(max(m.free, 0)), size(m.all), m.why)
}

// size prints bytes for people: MiB, and KiB where those would say little.
func size(n int64) string {
	if n < 10<<20 {
		return fmt.Sprintf("%d KiB", (n+1023)>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// roomForContext refuses a context whose KV cache alone is more than this process may hold: llama.cpp would be killed
// filling it.
func (s *Session) roomForContext(file *gguf.File) error {
	kv := s.profile.KVBytes(s.cfg.Context, bytesPerElement(s.cfg.TypeK), bytesPerElement(s.cfg.TypeV))
	if window, ok := file.Meta.Uint(s.profile.Architecture + ".attention.sliding_window"); ok && window > 0 {
		kv /= 2 // such models keep the whole context in every second layer at least
	}
	have, err := s.means()
	if err != nil || kv <= 0 {
		return nil // nothing to compare; llama.cpp's own allocation is the judge
	}
	if kv > have.free {
		return input("%s: a context of %d tokens needs %s for its KV cache, and this process has %s left; ask for a smaller one with -c",
			s.cfg.Model, s.cfg.Context, size(kv), have)
	}
	return nil
}

// exactly reports what llama.cpp says that the context holds, where the library that asks it is there.
func (s *Session) exactly() {
	common, err := s.lib.OpenCommon()
	if err != nil {
		return
	}
	if held, err := common.Held(s.ctx); err == nil {
		s.report.ContextBytes, s.report.ComputeBytes = held.Context, held.Compute
	}
}

// roomToCompute refuses graphs so wide that their buffers don't fit. They are reserved and not filled yet: a long prompt
// would fill them, and the process be killed.
func (s *Session) roomToCompute() error {
	have, err := s.means()
	if err != nil {
		return nil // nothing to compare
	}
	if n := s.ctx.ComputeBytes; n > have.free {
		return input("%s: computing %d tokens at once in a context of %d needs %s, and this process has %s left; ask for fewer with --ubatch, or for a smaller context with -c",
			s.cfg.Model, s.cfg.Ubatch, s.cfg.Context, size(n), have)
	}
	return nil
}

// bytesPerElement is the size of a KV element of the named type: exact for the plain ones, 1 for the quantized, which
// are all at most that.
func bytesPerElement(name string) float64 {
	switch name {
	case "f32":
		return 4
	case "", "f16", "bf16":
		return 2
	}
	return 1
}

// allocate takes the expert slots, once all else that the run holds is there but the compute buffers, which fill later.
func (s *Session) allocate() error {
	have, err := s.means()
	known := err == nil
	have.free -= s.ctx.ComputeBytes
	bytes := s.cfg.CacheBytes
	if bytes == CacheAuto {
		if !known {
			return err
		}
		bytes = max(have.free-margin(have.all), 0)
	}
	slots := min(max(bytes, s.store.Smallest()), s.store.Whole())
	switch {
	case !known || slots <= have.free:
	case bytes <= s.store.Smallest():
		return input("%s: the fewest slots that experts can pass through take %s, and this process has %s left; ask for less with --ubatch, -c or --io-threads",
			s.cfg.Model, size(slots), have)
	default:
		return input("%s: a cache of %s does not fit, since this process has %s left; ask for a smaller one with --cache-mb, or for auto",
			s.cfg.Model, size(slots), have)
	}
	switch cycle := s.profile.TokenCycle(s.cfg.ExpertsUsed); {
	case bytes >= cycle:
	case s.cfg.CacheBytes == CacheAuto:
		s.note("%s are left for keeping experts, which is below the %s that one token's take: each token reads its own", size(bytes), size(cycle))
	case bytes > 0:
		s.note("a cache of %s is below the %s that one token's experts take: it can't hit", size(bytes), size(cycle))
	}
	s.progress("taking memory for experts", 0)
	taken, err := s.store.Allocate(bytes)
	if err != nil {
		return err
	}
	s.report.CacheBytes = taken
	if s.cfg.CachePin {
		s.pinCache()
	}
	return nil
}

// pinCache locks the expert cache. A refusal is no error: it is counted, and the run goes on.
func (s *Session) pinCache() {
	s.progress("locking the expert cache", 0)
	asked := s.report.CacheBytes
	p := s.store.Pin(s.cfg.CachePinFit, s.profile.TokenCycle(s.cfg.ExpertsUsed))
	s.report.CachePinned, s.report.CachePinRefused, s.report.CacheBytes = p.Locked, p.Refused, s.store.Bytes()
	switch {
	case p.Refused == 0:
	case p.Locked == 0:
		s.note("the system locks none of the expert cache worth having, which is ordinary memory at its full %s: %v", size(asked), p.Why)
	case p.Shrunk:
		s.note("the system locked %s of the expert cache and refused %s, so the cache is %s in place of %s: %v",
			size(p.Locked), size(p.Refused), size(s.report.CacheBytes), size(asked), p.Why)
	default:
		s.note("the system locked %s of the expert cache and refused %s, which stay ordinary memory: %v; --cache-pin-fit makes the cache smaller in place of that",
			size(p.Locked), size(p.Refused), p.Why)
	}
}

// margin is what CacheAuto leaves of the memory this process may hold: an unprofiled machine's share, and never less than
// 256 MiB.
func margin(holdable int64) int64 { return max(holdable*15/100, 256<<20) }

// pinDense locks the dense set. A refusal part way is no error either: what was granted stays.
func (s *Session) pinDense() {
	locked, err := s.dense.Lock()
	s.report.DensePinned = locked
	if err == nil {
		return
	}
	s.report.DensePinRefused = s.dense.Bytes() - locked
	s.note("the system locked %s of the dense set and refused %s, which are ordinary memory: %v", size(locked), size(s.report.DensePinRefused), err)
	if locked == 0 {
		s.cfg.Dense = "anon"
	}
}
