package experts

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/llama"
	"github.com/bmoe/bmoe/platform/pages"
)

// memoryFile is a model file in memory that asks for aligned reads, as direct I/O does.
type memoryFile struct {
	data  []byte
	align int
	fail  func(off int64) error
}

func (f *memoryFile) Align() int   { return f.align }
func (f *memoryFile) Path() string { return "model.gguf" }

func (f *memoryFile) ReadAt(p []byte, off int64) (int, error) {
	if f.fail != nil {
		if err := f.fail(off); err != nil {
			return 0, err
		}
	}
	if a := int64(f.align); off%a != 0 || int64(len(p))%a != 0 || int64(uintptr(unsafe.Pointer(&p[0])))%a != 0 {
		return 0, fmt.Errorf("a read of %d bytes at %d is not aligned to %d", len(p), off, f.align)
	}
	return bytes.NewReader(f.data).ReadAt(p, off)
}

// rig is a store over float32 experts, whose graphs are computed by reference code in Go in place of ggml.
type rig struct {
	*Store
	file            *memoryFile
	embed, ff       int
	routers         []*llama.Tensor // [embed, experts] of each layer
	experts, layers int
	weights         map[string][]float32
	batches         int
}

// Numbers of operations, as ggml gives them.
const (
	testMulMatID = 29
	testMulMat   = 28
	testAdd      = 2
	testMul      = 7
	testUnary    = 80
	testOrder    = 70 // any that does not change an order
)

// newRig has layers of gate and up [embed, ff, experts] and down [ff, embed, experts]. Nothing in the file is aligned.
func newRig(t testing.TB, cfg Config, layers, experts int, cache float64) *rig {
	t.Helper()
	r := &rig{embed: 24, ff: 20, experts: experts, layers: layers, weights: map[string][]float32{}}
	rng := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 36) // a header
	var all int64
	for l := range layers {
		for _, kind := range []string{"gate", "up", "down"} {
			e := Tensor{Name: fmt.Sprintf("blk.%d.%s", l, kind), Layer: l, Experts: experts, Offset: int64(len(data))}
			if kind == "down" {
				e.Role = Out
			}
			n := r.embed * r.ff
			e.Slice = int64(4 * n)
			if l%2 == 1 && kind == "down" {
				n += 4 * r.embed // another size: wider rows
				e.Slice = int64(4 * n)
			}
			w := make([]float32, n*experts)
			for i := range w {
				w[i] = float32(rng.NormFloat64())
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(w[i]))
			}
			r.weights[e.Name] = w
			all += e.Slice * int64(experts)
			cfg.Tensors = append(cfg.Tensors, e)
		}
	}
	if r.file = (&memoryFile{data: data, align: 512}); cfg.Files == nil {
		cfg.Files = []File{r.file}
	}
	cfg.Library = &llama.Library{OpMulMatID: testMulMatID, OpMulMat: testMulMat, OpAdd: testAdd, OpMul: testMul, OpUnary: testUnary}
	cfg.Threads, cfg.ThreadsBatch = 1, 2
	r.Store = index(cfg)
	for i := range r.tensors {
		r.tensors[i].columns = int64(r.embed) // as the loader would say
	}
	for range layers {
		w := dense3(r.embed, experts, 1)
		for i := range unsafe.Slice((*float32)(w.Data), r.embed*experts) {
			*(*float32)(unsafe.Add(w.Data, 4*i)) = 0.05 * float32(rng.NormFloat64())
		}
		r.routers = append(r.routers, w)
	}
	var head [maxNodes]*llama.Tensor
	graph := &llama.Graph{Node: unsafe.Pointer(&head)}
	r.newGraph = func(int) (uintptr, *llama.Graph) { return 0, graph }
	r.exec = func(int) bool { r.batches++; return multiply(graph) }
	_, err := r.Allocate(int64(cache * float64(all)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Store.Close()) })
	return r
}

// multiply is MUL_MAT_ID over float32, as ggml.h describes it.
func multiply(g *llama.Graph) bool {
	at := func(p unsafe.Pointer, off uint64) *float32 { return (*float32)(unsafe.Add(p, off)) }
	for _, n := range g.NodeList() {
		w, in, ids := n.Src[0], n.Src[1], n.Src[2]
		if n.Op == testMulMat {
			ids = dense3(1, 1, 1)
			w = &llama.Tensor{Ne: w.Ne, Nb: w.Nb, Data: w.Data}
			w.Ne[2] = 1
		}
		for t := range uint64(ids.Ne[1]) {
			for k := range uint64(ids.Ne[0]) {
				id := *(*int32)(unsafe.Add(ids.Data, k*ids.Nb[0]+t*ids.Nb[1]))
				if id < 0 || int64(id) >= w.Ne[2] {
					return false
				}
				for row := range uint64(n.Ne[0]) {
					var sum float32
					for i := range uint64(w.Ne[0]) {
						sum += *at(w.Data, uint64(id)*w.Nb[2]+row*w.Nb[1]+4*i) * *at(in.Data, (k%uint64(in.Ne[1]))*in.Nb[1]+t*in.Nb[2]+4*i)
					}
					*at(n.Data, k*n.Nb[1]+t*n.Nb[2]+4*row) = sum
				}
			}
		}
	}
	return true
}

// dense3 is a float32 tensor of the given shape with its strides.
func dense3(a, b, c int) *llama.Tensor {
	data := make([]float32, a*b*c)
	return &llama.Tensor{
		Ne: [4]int64{int64(a), int64(b), int64(c), 1}, Data: unsafe.Pointer(unsafe.SliceData(data)),
		Nb: [4]uint64{4, uint64(4 * a), uint64(4 * a * b), uint64(4 * a * b * c)},
	}
}

// node is one MUL_MAT_ID over tensor i of the store, with its inputs filled.
func (r *rig) node(i int, ids [][]int32, rng *rand.Rand) *llama.Tensor {
	e := &r.tensors[i]
	cols := r.embed
	if e.Role == Out {
		cols = r.ff
	}
	rows := int(e.Slice/4) / cols
	if e.Role == Out && int(e.Slice/4) != r.embed*r.ff {
		cols, rows = r.ff+4, r.embed
	}
	used, tokens := len(ids[0]), len(ids)
	n, in, id := dense3(rows, used, tokens), dense3(cols, 1, tokens), dense3(used, tokens, 1)
	if e.Role == Out {
		in = dense3(cols, used, tokens)
	}
	for j := range unsafe.Slice((*float32)(in.Data), cols*int(in.Ne[1])*tokens) {
		*(*float32)(unsafe.Add(in.Data, 4*j)) = float32(rng.NormFloat64())
	}
	for t := range ids {
		for k, v := range ids[t] {
			*(*int32)(unsafe.Add(id.Data, 4*(t*used+k))) = v
		}
	}
	w := &llama.Tensor{
		Ne: [4]int64{int64(cols), int64(rows), int64(r.experts), 1}, Extra: uintptr(i + 1),
		Nb: [4]uint64{4, uint64(4 * cols), uint64(e.Slice), uint64(e.Slice) * uint64(r.experts)},
	}
	n.Op = testMulMatID
	n.Src = [10]*llama.Tensor{w, in, id}
	return n
}

// stage runs a layer's gate and up, then its down, and compares each with the reference over the whole tensor.
func (r *rig) layer(t testing.TB, l int, ids [][]int32, rng *rand.Rand) {
	t.Helper()
	for _, nodes := range [][]*llama.Tensor{{r.node(3*l, ids, rng), r.node(3*l+1, ids, rng)}, {r.node(3*l+2, ids, rng)}} {
		for _, n := range nodes[1:] {
			n.Src[2] = nodes[0].Src[2] // one routing
		}
		require.Equal(t, llama.StatusSuccess, r.compute(nodes), "%v", r.Err())
		for _, n := range nodes {
			want := dense3(int(n.Ne[0]), int(n.Ne[1]), int(n.Ne[2]))
			ref := *n
			w := *n.Src[0]
			w.Data = unsafe.Pointer(unsafe.SliceData(r.weights[r.tensors[w.Extra-1].Name]))
			ref.Src[0], ref.Data = &w, want.Data
			list := []*llama.Tensor{&ref}
			require.True(t, multiply(&llama.Graph{Nodes: 1, Node: unsafe.Pointer(unsafe.SliceData(list))}))
			size := int(n.Ne[0] * n.Ne[1] * n.Ne[2])
			require.Equal(t, unsafe.Slice((*float32)(want.Data), size), unsafe.Slice((*float32)(n.Data), size))
		}
	}
}

// route draws distinct experts for each token, few of them often.
func route(rng *rand.Rand, tokens, used, experts int) [][]int32 {
	ids := make([][]int32, tokens)
	for t := range ids {
		seen := map[int32]bool{}
		for len(ids[t]) < used {
			e := int32(float64(experts) * math.Pow(rng.Float64(), 2))
			if !seen[e] {
				seen[e] = true
				ids[t] = append(ids[t], e)
			}
		}
	}
	return ids
}

func TestEveryResultIsTheReference(t *testing.T) {
	t.Parallel()
	for _, cache := range []float64{0, 0.1, 0.5, 1.5} {
		for _, overlap := range []bool{false, true} {
			for _, lanes := range []int{1, 2, 8} {
				t.Run(fmt.Sprintf("cache=%v,overlap=%t,lanes=%d", cache, overlap, lanes), func(t *testing.T) {
					t.Parallel()
					r := newRig(t, Config{Lanes: lanes, Overlap: overlap}, 3, 16, cache)
					rng := rand.New(rand.NewPCG(3, uint64(lanes)))
					for range 6 {
						for _, tokens := range []int{1, 1, 7, 40} {
							for l := range r.layers {
								r.layer(t, l, route(rng, tokens, 4, r.experts), rng)
							}
						}
					}
					s := r.Stats()
					assert.Positive(t, s.Misses)
					if cache > 1 {
						assert.LessOrEqual(t, s.ReadBytes, int64(len(r.file.data)), "with room for all, nothing is read twice")
					}
				})
			}
		}
	}
}

func TestOneExpertAtSeveralPositions(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{Lanes: 2, Overlap: true}, 1, 8, 1)
	rng := rand.New(rand.NewPCG(1, 1))
	r.layer(t, 0, [][]int32{{3, 3, 1, 3}}, rng)
	r.layer(t, 0, [][]int32{{3, 3}, {2, 3}}, rng)
}

func TestACacheBelowTheTokenCycleHitsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{Lanes: 1, Overlap: false}, 4, 64, 0)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 5 {
		for l := range r.layers {
			r.layer(t, l, [][]int32{{1, 2, 3, 4, 5, 6, 7, 8}}, rng)
		}
	}
	assert.Zero(t, r.Stats().Hits)
}

func TestLRUKeepsWhatWasUsedLast(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{Lanes: 1}, 1, 64, 0.5)
	rng := rand.New(rand.NewPCG(1, 1))
	slots := len(r.tensors[0].class.slots) / 3
	for e := range int32(slots - 1) {
		r.layer(t, 0, [][]int32{{e}}, rng)
	}
	r.layer(t, 0, [][]int32{{0}}, rng) // used again: not the coldest any more
	for e := range int32(3) {
		r.layer(t, 0, [][]int32{{50 + e}}, rng)
	}
	before := r.Stats()
	r.layer(t, 0, [][]int32{{0}}, rng)
	assert.Equal(t, before.Hits+3, r.Stats().Hits, "expert 0 stayed")
	r.layer(t, 0, [][]int32{{1}}, rng)
	assert.Equal(t, before.Misses+3, r.Stats().Misses, "expert 1 was the coldest and went")
}

func TestAReadErrorFailsTheGraphAndNamesItsCause(t *testing.T) {
	t.Parallel()
	for _, tokens := range []int{1, 9} {
		broken := errors.New("the drive is gone")
		r := newRig(t, Config{Lanes: 4, Overlap: true}, 2, 16, 0.3)
		rng := rand.New(rand.NewPCG(1, 1))
		r.layer(t, 0, route(rng, tokens, 4, 16), rng)
		r.file.fail = func(int64) error { return broken }
		n := r.node(3, route(rng, tokens, 4, 16), rng)
		assert.Equal(t, llama.StatusFailed, r.compute([]*llama.Tensor{n}))
		require.ErrorIs(t, r.Err(), broken)
		assert.Equal(t, llama.StatusFailed, r.compute([]*llama.Tensor{n}), "and stays failed")
	}
}

func TestAFileThatShrinksIsSaid(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{Lanes: 2, Overlap: true}, 1, 16, 0.3)
	r.file.data = r.file.data[:len(r.file.data)-200]
	n := r.node(2, [][]int32{{15, 1}}, rand.New(rand.NewPCG(1, 1)))
	assert.Equal(t, llama.StatusFailed, r.compute([]*llama.Tensor{n}))
	require.ErrorIs(t, r.Err(), io.ErrUnexpectedEOF)
	assert.ErrorContains(t, r.Err(), "model.gguf")
}

func TestAbortEndsAWaitForReads(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{Lanes: 1, Overlap: true}, 1, 16, 0.3)
	release := make(chan struct{})
	asked := make(chan struct{}, 100)
	r.file.fail = func(int64) error { asked <- struct{}{}; <-release; return nil }
	done := make(chan int)
	go func() {
		done <- r.compute([]*llama.Tensor{r.node(0, [][]int32{{1, 2}}, rand.New(rand.NewPCG(1, 1)))})
	}()
	<-asked
	r.Abort()
	assert.Equal(t, llama.StatusAborted, <-done)
	close(release)
}

func TestClassesOfSlots(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{Lanes: 2}, 4, 16, 0.5)
	require.Len(t, r.classes, 2, "two sizes of slices")
	for i := range r.tensors {
		e := &r.tensors[i]
		assert.GreaterOrEqual(t, e.class.largest, e.Slice)
		assert.Less(t, float64(e.class.largest-e.Slice), float64(e.class.largest)/8)
	}
}

// routedNodes is a layer's gate and up for a token of input x, with ids that its router chooses in the graph that shows
// how: a view of a ranking of probabilities, which come from biased logits of the normed input.
func (r *rig) routedNodes(l int, x []float32, used int, rng *rand.Rand) []*llama.Tensor {
	norm := dense3(r.embed, 1, 1)
	for i := range r.embed {
		*(*float32)(unsafe.Add(norm.Data, 4*i)) = 1 + float32(i%3)*float32(l)
	}
	in, bias := dense3(r.embed, 1, 1), dense3(r.experts, 1, 1)
	in.Op, in.Src = testMul, [10]*llama.Tensor{dense3(r.embed, 1, 1), norm}
	for i, g := range floats(norm) {
		floats(in)[i] = x[i] * g
	}
	for i := range floats(bias) {
		floats(bias)[i] = float32(i%5) / 4
	}
	logits := dense3(r.experts, 1, 1)
	logits.Op, logits.Src = testMulMat, [10]*llama.Tensor{r.routers[l], in}
	list := []*llama.Tensor{logits}
	multiply(&llama.Graph{Nodes: 1, Node: unsafe.Pointer(unsafe.SliceData(list))})
	sigmoid, biased, ranked, view := dense3(r.experts, 1, 1), dense3(r.experts, 1, 1), dense3(r.experts, 1, 1), dense3(used, 1, 1)
	sigmoid.Op, sigmoid.Src = testUnary, [10]*llama.Tensor{logits}
	biased.Op, biased.Src = testAdd, [10]*llama.Tensor{sigmoid, bias}
	ranked.Op, ranked.Src = testOrder, [10]*llama.Tensor{biased}
	view.Op, view.ViewSrc = testOrder, ranked
	type scored struct {
		expert int32
		score  float64
	}
	var all []scored
	for i, v := range floats(logits) {
		all = append(all, scored{int32(i), 1/(1+math.Exp(-float64(v))) + float64(floats(bias)[i])})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].score > all[j].score })
	for k := range used {
		*(*int32)(unsafe.Add(view.Data, 4*k)) = all[k].expert
	}
	nodes := []*llama.Tensor{r.node(3*l, [][]int32{make([]int32, used)}, rng), r.node(3*l+1, [][]int32{make([]int32, used)}, rng)}
	for _, n := range nodes {
		n.Src[1], n.Src[2] = in, view
	}
	return nodes
}

// With the same input at every layer the guess is right, so what the next layer wants is under way or there when it asks.
func TestTheNextLayersExpertsAreReadAhead(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{Lanes: 2, Overlap: true}, 4, 64, 0.6)
	rng := rand.New(rand.NewPCG(5, 5))
	token := func() {
		x := make([]float32, r.embed)
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		for l := range r.layers {
			nodes := r.routedNodes(l, x, 4, rng)
			if l > 0 && r.ahead.demand >= worthLooking && r.ahead.routers[l].learnt {
				guess := slices.Clone(r.ahead.guess)
				for k := range 4 {
					assert.Contains(t, guess, idAt(nodes[0], k, 0), "layer %d", l)
				}
			}
			require.Equal(t, llama.StatusSuccess, r.compute(nodes), "%v", r.Err())
			down := r.node(3*l+2, [][]int32{{0, 0, 0, 0}}, rng)
			down.Src[2] = nodes[0].Src[2]
			require.Equal(t, llama.StatusSuccess, r.compute([]*llama.Tensor{down}), "%v", r.Err())
		}
	}
	r.ahead.demand = 8
	token() // learns the routers
	for range 20 {
		token()
	}
	assert.Positive(t, r.ahead.demand)
}

// A guess whose read has not begun is taken back when it turns out wrong, and its slot serves again.
func TestAWrongGuessIsWithdrawn(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{Lanes: 1, Overlap: true}, 2, 64, 0.9)
	rng := rand.New(rand.NewPCG(5, 5))
	release, entered := make(chan struct{}), make(chan struct{}, 64)
	var hold atomic.Bool
	r.file.fail = func(int64) error {
		if hold.Load() {
			entered <- struct{}{}
			<-release
		}
		return nil
	}
	hold.Store(true)
	r.gen++
	require.True(t, r.speculate(3, 40)) // the one lane is in this read
	<-entered
	require.True(t, r.speculate(3, 41)) // and this one is queued behind it
	before := r.stats.ReadBytes
	r.ahead.guess, r.ahead.at = []int32{40, 41}, 1
	r.withdraw(r.node(3, [][]int32{{7}}, rng))
	assert.Equal(t, before-r.tensors[3].Slice, r.stats.ReadBytes)
	assert.Equal(t, int32(-1), r.tensors[3].slot[41], "withdrawn")
	assert.NotEqual(t, int32(-1), r.tensors[3].slot[40], "under way: it arrives")
	hold.Store(false)
	close(release)
	for r.inflight > 0 {
		require.True(t, r.await())
	}
	r.layer(t, 1, [][]int32{{41, 40}}, rng)
}

// BenchmarkResidentToken is the bookkeeping of one layer of a token whose experts are all resident: look-ups, nodes and
// the LRU, without computing.
func BenchmarkResidentToken(b *testing.B) {
	r := newRig(b, Config{Lanes: 4, Overlap: true}, 1, 128, 2)
	rng := rand.New(rand.NewPCG(1, 1))
	ids := [][]int32{{1, 9, 17, 25, 33, 41, 49, 57}}
	in := []*llama.Tensor{r.node(0, ids, rng), r.node(1, ids, rng)}
	in[1].Src[2] = in[0].Src[2]
	out := []*llama.Tensor{r.node(2, ids, rng)}
	r.layer(b, 0, ids, rng)
	r.exec = func(int) bool { return true }
	b.ReportAllocs()
	for b.Loop() {
		if r.compute(in) != llama.StatusSuccess || r.compute(out) != llama.StatusSuccess {
			b.Fatal(r.Err())
		}
	}
}

// TestAResidentTokenAllocatesNothing holds the benchmark's 0 B/op.
func TestAResidentTokenAllocatesNothing(t *testing.T) {
	r := newRig(t, Config{Lanes: 4, Overlap: true}, 1, 128, 2)
	rng := rand.New(rand.NewPCG(1, 1))
	ids := [][]int32{{1, 9, 17, 25, 33, 41, 49, 57}}
	in := []*llama.Tensor{r.node(0, ids, rng)}
	r.layer(t, 0, ids, rng)
	r.exec = func(int) bool { return true }
	assert.Zero(t, testing.AllocsPerRun(100, func() { r.compute(in) }))
}

// A system that locks so many bytes and no more leaves a cache that still computes: whole where it is not to be fitted, as
// large as what was granted where it is, and ordinary memory where the grant is below the floor.
func TestPin(t *testing.T) {
	t.Parallel()
	page := int64(pages.Size())
	for name, c := range map[string]struct {
		grant, floor int64 // of all the bytes, in hundredths
		fit          bool
		locked       [2]int64 // least and most, likewise
		shrunk       bool
	}{
		"all is granted":              {grant: 100, floor: 10, fit: true, locked: [2]int64{100, 100}},
		"a part, not fitted":          {grant: 50, floor: 10, locked: [2]int64{40, 50}},
		"a part, fitted":              {grant: 50, floor: 10, fit: true, locked: [2]int64{35, 50}, shrunk: true},
		"less than is worth having":   {grant: 5, floor: 10, fit: true, locked: [2]int64{0, 0}},
		"the very first is refused":   {grant: 0, floor: 0, fit: true, locked: [2]int64{0, 50}, shrunk: true},
		"refused, and a floor for it": {grant: 0, floor: 10, fit: true, locked: [2]int64{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Config{Lanes: 2, Overlap: true}, 6, 64, 0.8)
			var all, granted int64
			for _, k := range r.classes {
				all += int64(len(k.mem))
			}
			before := r.Bytes()
			refusal := errors.New("no more")
			r.lock = func(region *pages.Region, off, n int) error {
				if granted+int64(n) > all*c.grant/100 {
					return refusal
				}
				granted += int64(n)
				return region.Lock(off, min(n, int(page))) // little, so that no limit of this process is met
			}
			p := r.Pin(c.fit, all*c.floor/100)
			assert.GreaterOrEqual(t, p.Locked, all*c.locked[0]/100-2*page)
			assert.LessOrEqual(t, p.Locked, all*c.locked[1]/100)
			assert.Equal(t, c.shrunk, p.Shrunk)
			assert.Equal(t, c.grant < 100, p.Why != nil)
			if c.shrunk {
				assert.Less(t, r.Bytes(), before)
			} else {
				assert.Equal(t, before, r.Bytes(), "the budget is left alone")
			}
			rng := rand.New(rand.NewPCG(9, 9))
			for range 3 {
				for _, tokens := range []int{1, 30} {
					for l := range r.layers {
						r.layer(t, l, route(rng, tokens, 4, r.experts), rng)
					}
				}
			}
		})
	}
}

// What the system grants is found to the page, however the refusal falls.
func TestPinTakesAllThatIsGranted(t *testing.T) {
	t.Parallel()
	page := int64(pages.Size())
	r := newRig(t, Config{Lanes: 2}, 6, 64, 0.8)
	c := r.classes[0]
	whole := int64(len(c.mem)) / page
	require.Greater(t, whole, int64(8))
	for grant := range whole {
		c.locked = 0
		held := int64(0)
		err := c.lockUpTo(func(_ *pages.Region, _, n int) error {
			if held+int64(n) > grant*page {
				return errors.New("no more")
			}
			held += int64(n)
			return nil
		}, int64(len(c.mem)), true)
		require.Error(t, err)
		require.Equal(t, grant*page, c.locked)
	}
	c.locked = 0
}

// A drive that failed once may answer again: after Recover the next graph is computed, to the right result.
func TestRecover(t *testing.T) {
	t.Parallel()
	for _, tokens := range []int{1, 9} {
		r := newRig(t, Config{Lanes: 4, Overlap: true}, 2, 16, 0.3)
		rng := rand.New(rand.NewPCG(1, 1))
		var broken atomic.Bool
		broken.Store(true)
		r.file.fail = func(int64) error {
			if broken.Load() {
				return errors.New("the drive is gone")
			}
			return nil
		}
		require.Equal(t, llama.StatusFailed, r.compute([]*llama.Tensor{r.node(0, route(rng, tokens, 4, 16), rng)}))
		broken.Store(false)
		r.Recover()
		require.NoError(t, r.Err())
		for range 4 {
			for l := range r.layers {
				r.layer(t, l, route(rng, tokens, 4, 16), rng)
			}
		}
	}
}

// A wide graph says which layer it is at.
func TestWatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{Lanes: 2}, 3, 16, 0.5)
	rng := rand.New(rand.NewPCG(1, 1))
	var reached []int
	r.Watch(func(layer, layers int) { reached = append(reached, layer); assert.Equal(t, 3, layers) })
	for l := range r.layers {
		r.layer(t, l, route(rng, 9, 4, 16), rng)
	}
	assert.Equal(t, []int{0, 0, 1, 1, 2, 2}, reached, "each stage of each layer")
	r.Watch(nil)
	r.layer(t, 0, route(rng, 9, 4, 16), rng)
	assert.Len(t, reached, 6)
}
