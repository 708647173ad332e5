package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/gguf"
	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/platform/pages"
	"github.com/bmoe/bmoe/platform/storage"
)

// moe is a model of two expert tensors in each layer, whose slices are so many KiB.
func moe(t testing.TB, layers, experts int, sliceKiB int64) *model.Profile {
	p := model.Profile{Architecture: "test", Context: 8192, Embedding: 512, Vocab: 512, Layers: layers, ExpertCount: experts, ExpertUsed: min(experts, 2)}
	offset := int64(4096 + 32) // no whole block
	add := func(name string, dims ...int64) {
		tensor := model.Tensor{Name: name, Type: gguf.F16, Dims: [4]int64{1, 1, 1, 1}, Offset: offset}
		copy(tensor.Dims[:], dims)
		offset += tensor.Bytes()
		p.Tensors = append(p.Tensors, tensor)
	}
	for l := range layers {
		if experts == 0 {
			add(fmt.Sprintf("blk.%d.attn_k.weight", l), 512, 512)
			continue
		}
		add(fmt.Sprintf("blk.%d.ffn_up_exps.weight", l), 512, sliceKiB, int64(experts))
		add(fmt.Sprintf("blk.%d.ffn_down_exps.weight", l), sliceKiB, 512, int64(experts))
	}
	p.Shards = []model.Shard{{Name: "test.gguf", Bytes: offset}}
	m, err := model.New(p)
	require.NoError(t, err)
	return m
}

// simulated is a drive that takes latency for each read and then moves bytes for one read at a time, in the time of a
// synctest bubble.
type simulated struct {
	size    int64
	align   int
	latency time.Duration
	rate    int64
	fails   func(read int64) error
	held    func(read int64) time.Duration // what a mapping adds to a read
	unheld  error                          // why none can be made
	mapped  atomic.Int64
	reads   atomic.Int64
	bus     chan struct{}
}

func (s *simulated) hold() (io.Closer, error) {
	if s.unheld == nil {
		s.mapped.Add(1)
	}
	return mapping{s}, s.unheld
}

type mapping struct{ of *simulated }

func (m mapping) Close() error {
	m.of.mapped.Add(-1)
	return nil
}

func (s *simulated) Direct() bool { return s.align > 1 }
func (s *simulated) Align() int   { return s.align }
func (s *simulated) Size() int64  { return s.size }
func (s *simulated) Path() string { return "test.gguf" }
func (s *simulated) ReadAt(p []byte, off int64) (int, error) {
	n := s.reads.Add(1)
	if s.fails != nil {
		if err := s.fails(n); err != nil {
			return 0, err
		}
	}
	if off >= s.size {
		return 0, io.EOF
	}
	time.Sleep(s.latency)
	s.bus <- struct{}{}
	if s.mapped.Load() > 0 && s.held != nil {
		time.Sleep(s.held(n))
	}
	time.Sleep(time.Duration(float64(len(p)) / float64(s.rate) * float64(time.Second)))
	<-s.bus
	if rest := s.size - off; rest < int64(len(p)) {
		return int(rest), io.EOF
	}
	return len(p), nil
}

// lone is a model of two slices, in a shard each.
func lone(t testing.TB) *model.Profile {
	p := *moe(t, 1, 1, 448)
	p.Shards = []model.Shard{{Name: "1.gguf", Bytes: 1 << 20}, {Name: "2.gguf", Bytes: 1 << 20}}
	p.Tensors[1].Shard, p.Tensors[1].Offset = 1, p.Tensors[0].Offset
	m, err := model.New(p)
	require.NoError(t, err)
	return m
}

func measured(t *testing.T, s *simulated, m *model.Profile, page int64) machine.Storage {
	var found machine.Storage
	synctest.Test(t, func(t *testing.T) {
		s.bus = make(chan struct{}, 1)
		var last float64
		d := drive{file: s, hold: s.hold}
		found = d.measure(t.Context(), m, page, func(fraction float64) {
			assert.Greater(t, fraction, last)
			last = fraction
		})
	})
	require.NoError(t, (&machine.Profile{Storage: found}).Check())
	return found
}

// The rates are those of the drive: of a drive that waits 100 us and then moves 1 GB/s, reads of 448 KiB get 0.82 GB/s one
// at a time, and all of it two at a time.
func TestRates(t *testing.T) {
	t.Parallel()
	s := &simulated{size: 1 << 40, align: 512, latency: 100 * time.Microsecond, rate: 1e9}
	found := measured(t, s, moe(t, 24, 64, 448), 4096)
	require.Len(t, found.Curve, 9)
	for i, size := range []int64{224 << 10, 448 << 10, 896 << 10} {
		alone := float64(size) / (100e-6 + float64(size)/1e9)
		for k, lanes := range []int{1, 2, 4} {
			r := found.Curve[3*i+k]
			assert.Equal(t, size, r.Size)
			assert.Equal(t, lanes, r.Lanes)
			assert.InEpsilon(t, min(1e9, alone*float64(lanes)), r.Rate, 0.02, "%d on %d", size, lanes)
			if i == 1 {
				assert.InDelta(t, 1, r.Spread, 0.01, "the size that decides is repeated")
			} else {
				assert.Zero(t, r.Spread)
			}
		}
	}
	refault, ok := found.Refault.Get()
	require.True(t, ok)
	assert.InEpsilon(t, 4096/(100e-6+4096/1e9), refault, 0.01)
	assert.Contains(t, found.Refault.From(), "4096 bytes")
	assert.Regexp(t, `^direct reads at random places among the experts, the median of 3, in 1\.[0-9] s$`, found.From, "a quiet drive is not called otherwise")
}

// A mapping is said to slow reads only where every sample with it is clearly slower than every one without, and never said
// not to.
func TestMappingSlowsReads(t *testing.T) {
	t.Parallel()
	const never = "such reads were not seen to be slower with the file mapped, which is no evidence that a run's are not: --release-mmap on and off would tell"
	for name, c := range map[string]struct {
		held   func(read int64) time.Duration
		unheld error
		align  int
		m      *model.Profile
		yes    bool
		rates  bool
		from   string
	}{
		"it does":             {held: func(int64) time.Duration { return 400 * time.Microsecond }, yes: true, rates: true, from: "each of 3 samples with the file mapped was slower than each without"},
		"it does not":         {rates: true, from: never},
		"by little":           {held: func(int64) time.Duration { return 20 * time.Microsecond }, rates: true, from: never},
		"now and then":        {held: func(read int64) time.Duration { return time.Duration(read/1000%2) * 400 * time.Microsecond }, rates: true, from: never},
		"it cannot be mapped": {unheld: errors.New("map test.gguf: cannot allocate memory"), from: "map test.gguf: cannot allocate memory"},
		"ordinary reads":      {align: 1, from: "only reads past the system's file cache are slowed by one"},
		"one expert":          {m: moe(t, 1, 1, 448), rates: true, from: never},
		"one slice":           {m: lone(t), from: "the experts are too few to be read several at a time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &simulated{size: 1 << 40, align: max(c.align, 1), latency: 100 * time.Microsecond, rate: 1e9, held: c.held, unheld: c.unheld}
			if c.align == 0 {
				s.align = 512
			}
			m := c.m
			if m == nil {
				m = moe(t, 24, 64, 448)
			}
			found := measured(t, s, m, 4096)
			assert.Equal(t, c.yes, machine.IsYes(found.MappingSerialises))
			assert.False(t, machine.IsNo(found.MappingSerialises))
			assert.Equal(t, c.from, found.MappingSerialises.From())
			assert.Equal(t, c.rates, found.MappedRate.Known())
			assert.Equal(t, c.rates, found.UnmappedRate.Known())
			assert.NotEmpty(t, found.Curve)
			assert.Zero(t, s.mapped.Load(), "what was mapped is not any more")
		})
	}
}

// A drive that is not quiet is said to be so, and one that is fast only at first.
func TestUnsteadyDrives(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rates [][]float64
		says  string
	}{
		"quiet":                    {[][]float64{{100, 105, 101}, {200, 190, 198}}, ""},
		"one point is not":         {[][]float64{{100, 105, 101}, {200, 150, 198}}, "; repeats differ up to 1.33 times, so the drive is not quiet"},
		"bursts":                   {[][]float64{{150, 105, 100}, {300, 190, 198}}, "; repeats differ up to 1.58 times and all get slower, as of a drive that is fast in bursts"},
		"slower in one point only": {[][]float64{{150, 105, 100}, {190, 190, 198}}, "; repeats differ up to 1.50 times, so the drive is not quiet"},
		"ended early":              {[][]float64{{150, 100}, {150}}, "; repeats differ up to 1.50 times, so the drive is not quiet"},
		"nothing":                  {[][]float64{nil, nil}, ""},
	} {
		var s samples
		for _, rates := range c.rates {
			s.slice = append(s.slice, &point{rates: rates})
		}
		assert.Equal(t, c.says, s.unsteady(), name)
	}
}

// Drives of every kind are measured in about a second, which a slow one may exceed by its last reads.
func TestTakesAboutASecond(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		drive *simulated
		most  time.Duration
		lanes int // of the slice's points
	}{
		"a fast one":             {&simulated{latency: 20 * time.Microsecond, rate: 14e9}, 1300 * time.Millisecond, 3},
		"an ordinary one":        {&simulated{latency: 80 * time.Microsecond, rate: 2e9}, 1300 * time.Millisecond, 3},
		"one that turns":         {&simulated{latency: 12 * time.Millisecond, rate: 150e6}, 1800 * time.Millisecond, 3},
		"one across the network": {&simulated{latency: 40 * time.Millisecond, rate: 1e6}, 4500 * time.Millisecond, 3},
		"one that is hopeless":   {&simulated{latency: 40 * time.Millisecond, rate: 1e5}, 5 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := moe(t, 24, 64, 448)
			synctest.Test(t, func(t *testing.T) {
				s := c.drive
				s.size, s.align, s.bus = 1<<40, 4096, make(chan struct{}, 1)
				d := drive{file: s, hold: s.hold}
				begin := time.Now()
				found := d.measure(t.Context(), m, 4096, func(float64) {})
				assert.LessOrEqual(t, time.Since(begin), c.most)
				points := 0
				for _, r := range found.Curve {
					if r.Size == m.SliceSize() {
						points++
					}
				}
				assert.Equal(t, c.lanes, points)
				if points == 0 {
					assert.Equal(t, "the drive is too slow to be measured in 3 s", found.From)
				}
			})
		})
	}
}

// A fast drive is sampled by bytes.
func TestSampleIsSizedInBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &simulated{size: 1 << 40, align: 512, rate: 20e9, bus: make(chan struct{}, 1)}
		d := drive{file: s, memory: [][]byte{make([]byte, 1<<20)}}
		p := &point{places: spread([]extent{{0, 1 << 40}}, 1<<20, 512), lanes: 1, limit: sampleTime}
		_, err := d.sample(t.Context(), p)
		require.NoError(t, err)
		assert.EqualValues(t, 512, s.reads.Load())
	})
}

func TestSmallAndOddModels(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		m       *model.Profile
		align   int
		page    int64
		points  int
		refault string // why there is none
	}{
		"20 MiB":                     {moe(t, 2, 16, 640), 512, 4096, 9, ""},
		"one expert":                 {moe(t, 1, 1, 4), 512, 4096, 5, "the experts fill no page"}, // halves on all lanes, two slices on one and two, nothing of twice the size
		"slices of less than a page": {moe(t, 1, 2, 1), 512, 4096, 0, "the experts fill no page"},
		"ordinary reads":             {moe(t, 2, 16, 640), 1, 4096, 9, ""},
		"blocks larger than a page":  {moe(t, 2, 16, 640), 8192, 4096, 9, "a direct read takes 8192 bytes and a page has 4096"},
		"pages of 16 KiB":            {moe(t, 2, 16, 640), 4096, 16384, 9, ""},
		"no experts":                 {moe(t, 2, 0, 64), 512, 4096, 0, "the model has no experts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &simulated{size: c.m.FileBytes(), align: c.align, latency: 100 * time.Microsecond, rate: 1e9}
			found := measured(t, s, c.m, c.page)
			if c.points > 0 {
				assert.Len(t, found.Curve, c.points, "%+v", found.Curve)
			}
			assert.Equal(t, c.refault == "", found.Refault.Known())
			if c.refault != "" {
				assert.Equal(t, c.refault, found.Refault.From())
			}
		})
	}
}

// A read that fails leaves nothing half known.
func TestReadFails(t *testing.T) {
	t.Parallel()
	m := moe(t, 24, 64, 448)
	for _, at := range []int64{1, 50, 2000} {
		s := &simulated{size: 1 << 40, align: 512, latency: 100 * time.Microsecond, rate: 1e9, fails: func(n int64) error {
			if n >= at {
				return errors.New("input/output error")
			}
			return nil
		}}
		assert.Equal(t, Unread("input/output error"), measured(t, s, m, 4096))
	}
	short := &simulated{size: 1 << 20, align: 512, rate: 1e9}
	assert.Regexp(t, "^test.gguf has 1048576 bytes now and ends before the experts at [0-9]+$", measured(t, short, m, 4096).From)
}

// Neither a person who interrupts nor the plan waits for a drive that hangs.
func TestDriveThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, interrupted := range []bool{true, false} {
			ctx, cancel := context.WithCancel(t.Context())
			release := make(chan struct{})
			begin := time.Now()
			if interrupted {
				time.AfterFunc(time.Second, cancel)
			}
			found, err := answered(ctx, func(context.Context) machine.Storage {
				<-release
				return machine.Storage{}
			})
			if interrupted {
				assert.ErrorIs(t, err, context.Canceled)
				assert.Equal(t, time.Second, time.Since(begin))
			} else {
				assert.NoError(t, err)
				assert.Equal(t, patience, time.Since(begin))
				assert.Equal(t, Unread("the drive did not answer within 10 s"), found)
			}
			close(release)
			cancel()
		}
	})
}

// written is a model's file of random bytes.
func written(t testing.TB, dir string, m *model.Profile) string {
	path := filepath.Join(dir, "test.gguf")
	f, err := os.Create(path)
	require.NoError(t, err)
	_, err = io.CopyN(f, rand.NewChaCha8([32]byte{}), m.FileBytes())
	require.NoError(t, errors.Join(err, f.Sync(), f.Close()))
	return path
}

// On a real file there is a rate for every point, and the facts about direct reads are those of the file.
func TestRealFile(t *testing.T) {
	t.Parallel()
	m := moe(t, 2, 4, 160)
	path := written(t, t.TempDir(), m)
	f, err := storage.Open(path, true)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for _, direct := range []bool{true, false} {
		found, err := Storage(t.Context(), path, m, direct, func(float64) {})
		require.NoError(t, err)
		require.NoError(t, (&machine.Profile{Storage: found}).Check())
		sizes := map[int64]bool{}
		for _, r := range found.Curve {
			sizes[r.Size] = true
		}
		assert.Contains(t, sizes, m.SliceSize(), found.From)
		assert.True(t, found.Refault.Known() || int64(f.Align()) > int64(os.Getpagesize()), found.Refault.From())
		if direct {
			assert.Equal(t, f.Direct(), found.Direct.Or(!f.Direct()))
			assert.Equal(t, f.Why(), found.Direct.From())
			assert.Equal(t, f.Direct(), found.Align.Known())
			assert.EqualValues(t, f.Align(), found.Align.Or(1))
		} else {
			assert.False(t, found.Direct.Known(), "it was not tried")
		}
	}
}

func TestFileInMemory(t *testing.T) {
	t.Parallel()
	const shm = "/dev/shm"
	if runtime.GOOS != "linux" {
		return // has no such place
	}
	dir, err := os.MkdirTemp(shm, "probe")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	m := moe(t, 2, 4, 64)
	found, err := Storage(t.Context(), written(t, dir, m), m, true, func(float64) {})
	require.NoError(t, err)
	assert.True(t, machine.IsNo(found.Direct))
	assert.Equal(t, "the file is on a file system in memory", found.Direct.From())
	assert.False(t, found.Align.Known())
	assert.NotEmpty(t, found.Curve)
	assert.Contains(t, found.From, "ordinary reads")
}

// A file that is cut off while it is read is named, and what was measured of it is not believed.
func TestFileShrinks(t *testing.T) {
	t.Parallel()
	m := moe(t, 2, 4, 160)
	path := written(t, t.TempDir(), m)
	cut := false
	found, err := Storage(t.Context(), path, m, true, func(float64) {
		if !cut {
			cut = true
			assert.NoError(t, os.Truncate(path, 4096))
		}
	})
	require.NoError(t, err)
	assert.True(t, cut)
	assert.Empty(t, found.Curve)
	assert.Contains(t, found.From, path)
	assert.Contains(t, found.From, "the file ends there now")
	assert.False(t, found.Refault.Known())
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	m := moe(t, 2, 4, 160)
	path := written(t, t.TempDir(), m)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Storage(ctx, path, m, true, func(float64) { cancel() })
	assert.ErrorIs(t, err, context.Canceled)
}

func TestNoFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none")
	found, err := Storage(t.Context(), path, moe(t, 1, 4, 64), true, func(float64) {})
	require.NoError(t, err)
	assert.Contains(t, found.From, path)
	assert.False(t, found.Direct.Known())
}

// Places of one size are inside the experts, in whole blocks, and apart; each comes once before any comes again, in the
// same order every time.
func TestPlaces(t *testing.T) {
	t.Parallel()
	extents := []extent{{1000, 9000}, {9000, 9100}, {20000, 300000}, {300000, 555555}}
	for _, align := range []int64{1, 512, 4096} {
		for _, size := range []int64{100, 512, 7000, 65536} {
			p := spread(extents, size, align)
			all := p.deal(1 << 20)
			assert.Len(t, all, int(p.count))
			assert.Equal(t, all, spread(extents, size, align).deal(1<<20))
			seen := map[int64]bool{}
			for _, off := range all {
				assert.Zero(t, off%align)
				inside := false
				for _, e := range extents {
					inside = inside || off >= e.begin&^(align-1) && off+p.window <= (e.end+align-1)&^(align-1)
				}
				assert.True(t, inside, "%d bytes at %d", size, off)
				for o := range p.window {
					assert.False(t, seen[off+o])
					seen[off+o] = true
				}
			}
			half := p.count/2 + 1
			first, second := p.deal(half), p.deal(half)
			assert.Len(t, first, int(half))
			assert.Len(t, second, int(half), "dealt anew where too few are left")
		}
	}
	assert.Empty(t, spread(extents, 1<<20, 512).deal(1))
}

// BenchmarkStorage holds the rate of reads of a slice on four lanes against the bare loop of such reads.
func BenchmarkStorage(b *testing.B) {
	m := moe(b, 4, 64, 448)
	path := written(b, b.TempDir(), m)
	f, err := storage.Open(path, true)
	require.NoError(b, err)
	defer func() { _ = f.Close() }()
	for b.Loop() {
		found, err := Storage(b.Context(), path, m, true, func(float64) {})
		require.NoError(b, err)
		for _, r := range found.Curve {
			if r.Size == m.SliceSize() {
				b.ReportMetric(r.Rate/1e6, fmt.Sprintf("probe-MB/s-%d", r.Lanes))
			}
		}
		for _, lanes := range laneCounts {
			b.ReportMetric(loop(b, f, m.SliceSize(), lanes)/1e6, fmt.Sprintf("loop-MB/s-%d", lanes))
		}
	}
}

// loop reads the file from front to back in slices.
func loop(b *testing.B, f *storage.File, size int64, lanes int) float64 {
	var next atomic.Int64
	done := make(chan int64)
	memory, err := pages.Alloc(lanes * int(size))
	require.NoError(b, err)
	defer func() { _ = memory.Free() }()
	begin := time.Now()
	for lane := range int64(lanes) {
		go func() {
			var n int64
			for {
				at := (next.Add(1) - 1) * size
				if at+size > f.Size() {
					done <- n
					return
				}
				got, err := f.ReadAt(memory.Bytes()[lane*size:][:size], at)
				assert.NoError(b, err)
				n += int64(got)
			}
		}()
	}
	var n int64
	for range lanes {
		n += <-done
	}
	return float64(n) / time.Since(begin).Seconds()
}
