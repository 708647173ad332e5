package experts

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/bmoe/bmoe/core/llama"
	"github.com/bmoe/bmoe/platform/pages"
)

const (
	// batchBytes is how much gathered input and output one batch of wide nodes takes, unless a single expert's rows are more.
	batchBytes = 8 << 20
	// aheadReads is how many reads are under way at most beyond what the graph call itself needs: as long as a batch computes,
	// nobody starts new ones.
	aheadReads = 64
	// denseRouting is the share of a layer's experts that a graph must have routed to for the next layer's to be read before
	// its routing is known.
	denseRouting = 0.75
)

// ahead is a slice worth reading before it is asked for.
type ahead struct {
	tensor, expert int32
	pin            int64
}

// wide computes the nodes of many tokens expert by expert, in order of arrival: gather the rows that routed to it,
// multiply, scatter. It needs a few slots, not a layer of them. An expert's rows stay together and in the order of the
// tokens, as ggml groups them, so every kernel sees what it would see in the plain run.
func (s *Store) wide(nodes []*llama.Tensor) bool {
	w := &s.work
	first := nodes[0]
	experts := int(first.Src[0].Ne[2])
	s.group(first, experts)

	// The experts with most rows come first: they compute longest, and the reads of the others hide behind them.
	w.order = w.order[:0]
	for e := range int32(experts) {
		if w.counts[e] > 0 {
			w.order = append(w.order, e)
		}
	}
	slices.SortStableFunc(w.order, func(a, b int32) int { return cmp.Compare(w.counts[b], w.counts[a]) })

	w.items = w.items[:0]
	for _, e := range w.order {
		for n, node := range nodes {
			w.items = append(w.items, item{node: int32(n), tensor: tensorOf(node), expert: e, slot: -1, first: w.starts[e], count: w.counts[e]})
		}
	}
	missing := 0
	for i := range w.items {
		if !s.find(&w.items[i]) {
			missing++
		}
	}
	s.request(missing)
	if s.cfg.Overlap {
		s.planAhead(first)
	}
	ok := s.finish(nodes, s.buildWide)
	w.ahead = w.ahead[:0]
	return ok
}

// group lists, for every expert, the rows that route to it: row = token*used + position, ordered by token.
func (s *Store) group(node *llama.Tensor, experts int) {
	w := &s.work
	used, tokens := int(node.Src[2].Ne[0]), int(node.Src[2].Ne[1])
	w.counts = grow(w.counts, experts)
	w.starts = grow(w.starts, experts)
	w.rows = grow(w.rows, used*tokens)
	clear(w.counts)
	for t := range tokens {
		for k := range used {
			w.counts[idAt(node, k, t)]++
		}
	}
	at := int32(0)
	for e := range experts {
		w.starts[e] = at
		at += w.counts[e]
		w.counts[e] = 0
	}
	for t := range tokens {
		for k := range used {
			e := idAt(node, k, t)
			w.rows[w.starts[e]+w.counts[e]] = int32(t*used + k)
			w.counts[e]++
		}
	}
}

func grow(s []int32, n int) []int32 {
	if cap(s) < n {
		return make([]int32, n)
	}
	return s[:n]
}

// planAhead lists what to read behind this graph call: the layer's next stage, whose experts are the same, or the next
// layer, where so many experts are in use that most of its will be.
func (s *Store) planAhead(node *llama.Tensor) {
	w := &s.work
	t := &s.tensors[tensorOf(node)]
	w.ahead = w.ahead[:0]
	for _, c := range s.classes {
		c.ahead = 0
	}
	if t.Role == In {
		for _, e := range w.order {
			for _, o := range t.out {
				w.ahead = append(w.ahead, ahead{o, e, s.gen + 1})
			}
		}
		return
	}
	if float64(len(w.order)) < denseRouting*float64(t.Experts) {
		return
	}
	for e := range int32(t.Experts) {
		for _, i := range t.next {
			if e < int32(s.tensors[i].Experts) {
				w.ahead = append(w.ahead, ahead{i, e, s.gen + 1})
			}
		}
	}
}

// readAheadWide starts reads from the list while few are under way. What is listed and resident is only kept.
func (s *Store) readAheadWide() {
	w := &s.work
	for len(w.ahead) > 0 && s.inflight < aheadReads {
		a := w.ahead[0]
		e := &s.tensors[a.tensor]
		if i := e.slot[a.expert]; i >= 0 {
			e.class.slots[i].pin = max(e.class.slots[i].pin, a.pin)
		} else {
			if e.class.ahead >= len(e.class.slots)/2 {
				return // the rest is for what the next call needs and this list does not name
			}
			i := s.take(a.tensor, a.expert, a.pin)
			if i < 0 {
				return
			}
			e.class.ahead++
			e.class.slots[i].fresh = true
			s.fetch(a.tensor, i, 1)
		}
		w.ahead = w.ahead[1:]
	}
}

// buildWide computes ready items up to a batch's size.
func (s *Store) buildWide(nodes []*llama.Tensor) bool {
	w := &s.work
	w.reset()
	w.batch = w.batch[:0]
	var gathered gather
	for i := range w.items {
		it := &w.items[i]
		if !s.isReady(it) {
			continue
		}
		need := s.wideBytes(nodes[it.node], it)
		if w.n == maxNodes || w.n > 0 && w.memUsed+need > batchBytes {
			break
		}
		if w.n == 0 && !w.room(max(need, batchBytes)) {
			return false
		}
		s.addWide(nodes[it.node], it, &gathered)
		w.batch = append(w.batch, int32(i))
	}
	if !s.run(s.cfg.ThreadsBatch) {
		return false
	}
	for j, i := range w.batch {
		it := &w.items[i]
		s.scatter(nodes[it.node], it, w.nodes[j])
		it.done = true
		s.settle(it)
	}
	s.release()
	return true
}

// settle decides what a wide graph leaves in the cache: each layer keeps the experts that most rows went to, as many as
// its share of the slots holds, and gives up the others first. A pass over all experts would otherwise leave nothing but
// the last layers.
func (s *Store) settle(it *item) {
	w := &s.work
	c := s.tensors[it.tensor].class
	rank, _ := slices.BinarySearchFunc(w.order, it, func(e int32, it *item) int { return cmp.Compare(it.count, w.counts[e]) })
	if float64(rank) >= float64(s.tensors[it.tensor].Experts)*float64(len(c.slots))/float64(c.slices) {
		c.cool(it.slot)
	}
}

// room makes the scratch memory at least n bytes long.
func (w *work) room(n int) bool {
	if len(w.mem) >= n {
		return true
	}
	if w.scratch != nil {
		_ = w.scratch.Free()
		w.scratch, w.mem = nil, nil
	}
	r, err := pages.Alloc(n)
	if err != nil {
		return false
	}
	w.scratch, w.mem = r, r.Bytes()
	return true
}

// takeBytes gives n bytes of scratch, aligned for ggml.
func (w *work) takeBytes(n int) unsafe.Pointer {
	p := unsafe.Pointer(&w.mem[w.memUsed])
	w.memUsed += (n + 63) &^ 63
	return p
}

// gather remembers the last gathered input: gate and up read the same rows.
type gather struct {
	from   unsafe.Pointer
	expert int32
	at     unsafe.Pointer
}

// wideBytes is the scratch an item takes at most: input rows, output rows and ids.
func (s *Store) wideBytes(node *llama.Tensor, it *item) int {
	n := int(it.count)
	return n*int(node.Src[1].Ne[0])*4 + n*int(node.Ne[0])*4 + n*4 + 3*64
}

// addWide gathers the item's rows and adds their matmul with the one expert.
func (s *Store) addWide(node *llama.Tensor, it *item, last *gather) {
	w := &s.work
	in := node.Src[1]
	used := int(node.Src[2].Ne[0])
	rows := w.rows[it.first : it.first+it.count]
	size := int(in.Ne[0]) * 4
	if last.from != in.Data || last.expert != it.expert || last.at == nil {
		*last = gather{in.Data, it.expert, w.takeBytes(size * len(rows))}
		to := unsafe.Slice((*byte)(last.at), size*len(rows))
		for i, r := range rows {
			token, position := int(r)/used, int(r)%used
			if in.Ne[1] == 1 {
				position = 0
			}
			from := unsafe.Add(in.Data, uint64(position)*in.Nb[1]+uint64(token)*in.Nb[2])
			copy(to[i*size:(i+1)*size], unsafe.Slice((*byte)(from), size))
		}
	}
	count := int64(len(rows))
	zeros := unsafe.Slice((*int32)(w.takeBytes(4*len(rows))), len(rows))
	clear(zeros)
	out := w.takeBytes(int(node.Ne[0]) * 4 * len(rows))

	n, as, b, ids := w.tensor(node), w.tensor(node.Src[0]), w.tensor(in), w.tensor(node.Src[2])
	as.Data, as.Buffer, as.Extra, as.ViewSrc = llama.Pointer(s.address(it.tensor, it.slot)), 0, 0, nil
	as.Ne[2], as.Nb[3] = 1, as.Nb[2]
	b.Data, b.ViewSrc = last.at, nil
	b.Ne[1], b.Ne[2], b.Ne[3] = 1, count, 1
	b.Nb[0], b.Nb[1], b.Nb[2], b.Nb[3] = 4, uint64(size), uint64(size), uint64(size)*uint64(count)
	ids.Data, ids.ViewSrc = unsafe.Pointer(&zeros[0]), nil
	ids.Ne = [4]int64{1, count, 1, 1}
	ids.Nb = [4]uint64{4, 4, 4 * uint64(count), 4 * uint64(count)}
	row := uint64(node.Ne[0]) * 4
	n.Data, n.ViewSrc = out, nil
	n.Ne[1], n.Ne[2], n.Ne[3] = 1, count, 1
	n.Nb[0], n.Nb[1], n.Nb[2], n.Nb[3] = 4, row, row, row*uint64(count)
	n.Src[0], n.Src[1], n.Src[2] = as, b, ids
	w.add(n)
}

// scatter puts the item's results where the plain run would have written them.
func (s *Store) scatter(node *llama.Tensor, it *item, result *llama.Tensor) {
	used := int(node.Src[2].Ne[0])
	size := int(node.Ne[0]) * 4
	from := unsafe.Slice((*byte)(result.Data), size*int(it.count))
	for i, r := range s.work.rows[it.first : it.first+it.count] {
		token, position := int(r)/used, int(r)%used
		to := unsafe.Add(node.Data, uint64(position)*node.Nb[1]+uint64(token)*node.Nb[2])
		copy(unsafe.Slice((*byte)(to), size), from[i*size:(i+1)*size])
	}
}
