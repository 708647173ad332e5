package experts

import (
	"math"
	"slices"
	"unsafe"

	"github.com/bmoe/bmoe/core/llama"
	"github.com/bmoe/bmoe/platform/pages"
)

// A layer's experts are known only once its attention is computed, and until then the drive would stand still. What goes
// into a layer's experts is close to what goes into the next layer's, so the next layer's router, asked with this layer's
// input, names most of the experts it will choose. Their slices are read ahead; a guess that turns out wrong while its read
// is still queued is taken back. A guess decides what is read and nothing else: results do not depend on it.

// router is how a layer chooses experts, as its graph shows it.
type router struct {
	learnt  bool
	weights llama.Tensor // [input, experts], nil data where the graph has another shape
	norm    []float32    // what the layer's norm multiplies by, nil where there is none
	adjust  []adjust     // from the product to what is ranked
}

// adjust is a step between the router's product and the ranking.
type adjust struct {
	add     []float32 // a bias per expert, or
	sigmoid bool
}

// lookahead guesses the next layer's experts.
type lookahead struct {
	routers []router // by MoE layer
	region  *pages.Region
	used    int

	asked  bool          // this stage's batches hold the matmul already
	node   *llama.Tensor // of the matmul, nil when there is none
	at     int           // the layer it is for
	demand float64       // missing slices per stage, a running mean
	guess  []int32
}

const (
	// worthLooking is how many slices a stage must miss, on average, for a guess to pay for its matmul.
	worthLooking = 0.25
	demandDecay  = 1.0 / 64
)

// lookaheadBytes is what the routers' copies take.
func (s *Store) lookaheadBytes() int64 {
	if !s.cfg.Overlap {
		return 0
	}
	var n int64
	for _, layer := range s.layers {
		e := &s.tensors[layer[0]]
		n += llama.Q8_0Bytes((e.columns+31)/32*32) * int64(e.Experts)
	}
	return n
}

// learn finds the layer's router behind the ids of its graph: the ranking comes, through steps that do not change the
// order and some that do, from a product with a matrix that is a weight.
func (s *Store) learn(node *llama.Tensor) {
	l := &s.ahead
	e := &s.tensors[tensorOf(node)]
	if l.routers == nil {
		l.routers = make([]router, len(s.layers))
	}
	r := &l.routers[e.layerAt]
	if r.learnt || e.Role != In {
		return
	}
	r.learnt = true
	product := node.Src[2]
	var steps []adjust
	for range 16 {
		if product == nil {
			return
		}
		if product.Op == s.lib.OpMulMat && product.Src[0] != nil && product.Src[0].Op == s.lib.OpNone {
			break
		}
		switch product.Op {
		case s.lib.OpAdd:
			b := product.Src[1]
			if b == nil || b.Op != s.lib.OpNone || b.Type != llama.TypeF32 || b.Ne[0] != int64(e.Experts) || !s.readable(b) {
				return
			}
			steps = append(steps, adjust{add: slices.Clone(floats(b))})
		case s.lib.OpUnary:
			steps = append(steps, adjust{sigmoid: true})
		}
		if product.Src[0] != nil {
			product = product.Src[0]
		} else {
			product = product.ViewSrc
		}
	}
	w := product.Src[0]
	if product.Op != s.lib.OpMulMat || w.Ne[1] != int64(e.Experts) || w.Ne[0] != node.Src[1].Ne[0] || !s.readable(w) {
		return
	}
	slices.Reverse(steps)
	r.adjust = steps
	r.norm = s.norm(product.Src[1], w.Ne[0])
	r.weights = s.compact(w)
}

// norm is what the layer's norm multiplies its input by.
func (s *Store) norm(x *llama.Tensor, n int64) []float32 {
	for range 4 {
		if x == nil {
			return nil
		}
		if g := x.Src[1]; x.Op == s.lib.OpMul && g != nil && g.Op == s.lib.OpNone && g.Type == llama.TypeF32 && g.Ne[0] == n && s.readable(g) {
			return slices.Clone(floats(g))
		}
		x = x.Src[0]
	}
	return nil
}

// readable tells a weight whose data lies in host memory.
func (s *Store) readable(t *llama.Tensor) bool {
	b := t.TypeOf()
	return t.Data != nil && (b == nil || s.lib.BuftIsHost(uintptr(unsafe.Pointer(b))))
}

// floats views a row of float32, whose memory ggml keeps while the model lives.
func floats(t *llama.Tensor) []float32 { return unsafe.Slice((*float32)(t.Data), int(t.Ne[0])) }

// compact is the router's matrix in 8 bits, a quarter to read per guess, or the matrix itself where that can't be.
func (s *Store) compact(w *llama.Tensor) llama.Tensor {
	l := &s.ahead
	t := *w
	t.Buffer, t.Extra, t.ViewSrc = 0, 0, nil
	size := int(llama.Q8_0Bytes(w.Ne[0]) * w.Ne[1])
	if w.Type != llama.TypeF32 || w.Ne[0]%32 != 0 || l.region == nil || l.used+size > len(l.region.Bytes()) {
		return t
	}
	to := unsafe.Pointer(&l.region.Bytes()[l.used])
	l.used += size
	s.lib.QuantizeChunk(llama.TypeQ8_0, uintptr(w.Data), uintptr(to), 0, w.Ne[1], w.Ne[0], 0)
	row := uint64(llama.Q8_0Bytes(w.Ne[0]))
	t.Type, t.Data = llama.TypeQ8_0, to
	t.Nb = [4]uint64{34, row, row * uint64(w.Ne[1]), row * uint64(w.Ne[1])}
	return t
}

// look adds the next layer's router to the batch, asked with this layer's input, if guessing is worth it.
func (s *Store) look(node *llama.Tensor) {
	l := &s.ahead
	l.node = nil
	e := &s.tensors[tensorOf(node)]
	if l.demand < worthLooking || e.Role != In || len(e.next) == 0 || l.routers == nil {
		return
	}
	own, next := &l.routers[e.layerAt], &l.routers[e.layerAt+1]
	if next.weights.Data == nil || next.weights.Ne[0] != node.Src[1].Ne[0] {
		return
	}
	w := &s.work
	l.at = e.layerAt + 1
	x := w.input[:next.weights.Ne[0]]
	copy(x, floats(node.Src[1]))
	if own.norm != nil && next.norm != nil {
		for i := range x {
			if own.norm[i] != 0 {
				x[i] *= next.norm[i] / own.norm[i]
			}
		}
	}
	in := w.tensor(node.Src[1])
	n, m := int64(len(x)), next.weights.Ne[1]
	in.Op, in.Data, in.ViewSrc = s.lib.OpNone, unsafe.Pointer(&x[0]), nil
	in.Ne, in.Nb = [4]int64{n, 1, 1, 1}, [4]uint64{4, uint64(4 * n), uint64(4 * n), uint64(4 * n)}
	out := w.tensor(node)
	scores := w.scores[:m]
	out.Op, out.Data, out.ViewSrc, out.Extra = s.lib.OpMulMat, unsafe.Pointer(&scores[0]), nil, 0
	out.Ne, out.Nb = [4]int64{m, 1, 1, 1}, [4]uint64{4, uint64(4 * m), uint64(4 * m), uint64(4 * m)}
	out.OpParams = [16]int32{}
	out.Src = [10]*llama.Tensor{w.tensor(&next.weights), in}
	w.add(out)
	l.node = out
}

// readGuess starts reading what the next layer will want by the guess that was computed with this stage.
func (s *Store) readGuess(node *llama.Tensor) {
	l := &s.ahead
	if l.node == nil {
		return
	}
	l.node = nil
	scores := s.work.scores[:l.routers[l.at].weights.Ne[1]]
	for _, a := range l.routers[l.at].adjust {
		for i := range scores {
			if a.sigmoid {
				scores[i] = float32(1 / (1 + math.Exp(-float64(scores[i]))))
			} else {
				scores[i] += a.add[i]
			}
		}
	}
	l.guess = l.guess[:0]
	for range int(node.Src[2].Ne[0]) {
		best := 0
		for i := range scores {
			if scores[i] > scores[best] {
				best = i
			}
		}
		l.guess = append(l.guess, int32(best))
		scores[best] = float32(math.Inf(-1))
	}
	// The inputs of a layer's experts come first, as they will be asked for.
	for _, role := range []Role{In, Out} {
		for _, expert := range l.guess {
			for _, t := range s.layers[l.at] {
				if s.tensors[t].Role == role && !s.speculate(t, expert) {
					return
				}
			}
		}
	}
}

// speculate reads a slice that may be wanted two graph calls from now, or keeps it where it is resident. It is false when
// no slot can be spared.
func (s *Store) speculate(t, expert int32) bool {
	e := &s.tensors[t]
	c := e.class
	if int(expert) >= e.Experts {
		return true
	}
	if i := e.slot[expert]; i >= 0 {
		c.touch(i)
		return true
	}
	if len(c.slots) < 4*s.few() || c.guessed >= len(c.slots)/8 {
		return false
	}
	i := s.take(t, expert, s.gen+2)
	if i < 0 {
		return false
	}
	c.guessed++
	v := &c.slots[i]
	v.fresh = true
	v.claim.Store(queued)
	s.fetch(t, i, 1)
	return true
}

// States of a speculative read, so that either a lane starts it or the computing goroutine takes it back.
const (
	claimed int32 = iota // not speculative, or a lane has it
	queued
	withdrawn
)

// withdraw takes back the queued reads of wrong guesses, once the layer's routing is known.
func (s *Store) withdraw(node *llama.Tensor) {
	l := &s.ahead
	e := &s.tensors[tensorOf(node)]
	if len(l.guess) == 0 || e.Role != In {
		return
	}
	if e.layerAt == l.at {
		for _, expert := range l.guess {
			if routed(node, expert) {
				continue
			}
			for _, t := range s.layers[l.at] {
				g := &s.tensors[t]
				if int(expert) >= g.Experts || g.slot[expert] < 0 {
					continue
				}
				i := g.slot[expert]
				v := &g.class.slots[i]
				if !v.fresh {
					continue
				}
				if v.state == reading && v.claim.CompareAndSwap(queued, withdrawn) {
					g.slot[expert], v.tensor = -1, -1
					s.stats.ReadBytes -= g.Slice
				} else {
					v.pin = 0 // it arrives for nothing; the next to need a slot may have it
				}
			}
		}
	}
	l.guess = l.guess[:0]
	for _, c := range s.classes {
		c.guessed = 0
	}
}

// routed tells whether the one token of the node goes to the expert.
func routed(node *llama.Tensor, expert int32) bool {
	for k := range int(node.Src[2].Ne[0]) {
		if idAt(node, k, 0) == expert {
			return true
		}
	}
	return false
}
