package experts

import (
	"errors"
	"time"
	"unsafe"

	"github.com/bmoe/bmoe/core/llama"
)

// item is one expert's part of a node: for one token a position in its routing, for more the rows that routed there.
type item struct {
	node   int32 // index into the graph's nodes
	tensor int32
	expert int32
	slot   int32 // -1 until it has one
	first  int32 // narrow: the position; wide: the first of its rows in rows
	count  int32 // rows
	done   bool
}

// compute runs a graph's expert matmuls in order, those of one routing together. The scheduler leaves views of their
// results in the same graph, which need no computing.
func (s *Store) compute(nodes []*llama.Tensor) int {
	if s.err != nil || s.jobs == nil {
		return llama.StatusFailed
	}
	stage := s.work.stage[:0]
	for _, n := range nodes {
		if n.Op != s.lib.OpMulMatID {
			continue
		}
		if len(stage) > 0 && stage[0].Src[2] != n.Src[2] {
			if !s.route(stage) {
				return s.failed()
			}
			stage = stage[:0]
		}
		stage = append(stage, n)
	}
	s.work.stage = stage
	if !s.route(stage) {
		return s.failed()
	}
	return llama.StatusSuccess
}

// failed is the status of a graph that did not end: because the run was aborted, or for another reason.
func (s *Store) failed() int {
	if s.abort.Load() {
		return llama.StatusAborted
	}
	return llama.StatusFailed
}

// route computes nodes that share their ids.
func (s *Store) route(nodes []*llama.Tensor) bool {
	s.gen++
	if s.abort.Load() || !s.drain() {
		return false
	}
	if s.cfg.Overlap {
		s.learn(nodes[0])
	}
	if nodes[0].Src[2].Ne[1] == 1 {
		return s.narrow(nodes)
	}
	if s.reached != nil {
		s.reached(s.tensors[tensorOf(nodes[0])].layerAt, len(s.layers))
	}
	return s.wide(nodes)
}

// tensorOf is the index of the node's weights among the store's tensors.
func tensorOf(n *llama.Tensor) int32 { return int32(n.Src[0].Extra) - 1 }

// idAt is the expert at a position of a token's routing.
func idAt(n *llama.Tensor, position, token int) int32 {
	ids := n.Src[2]
	return *(*int32)(unsafe.Add(ids.Data, uint64(position)*ids.Nb[0]+uint64(token)*ids.Nb[1]))
}

// narrow computes the nodes of one token. Resident slices are pinned first, so that no missing one evicts them; then the
// missing ones are read, and those of the layer's next stage, whose experts are the same.
func (s *Store) narrow(nodes []*llama.Tensor) bool {
	w := &s.work
	s.withdraw(nodes[0])
	w.items = w.items[:0]
	for n, node := range nodes {
		t := tensorOf(node)
		for k := range int(node.Src[2].Ne[0]) {
			w.items = append(w.items, item{node: int32(n), tensor: t, expert: idAt(node, k, 0), slot: -1, first: int32(k), count: 1})
		}
	}
	missing := 0
	for i := range w.items {
		if !s.find(&w.items[i]) {
			missing++
		}
	}
	s.ahead.demand += (float64(missing) - s.ahead.demand) * demandDecay
	s.request(missing)
	if s.cfg.Overlap && !s.starved() {
		s.readAhead(nodes[0])
	}
	s.ahead.asked = false
	if !s.finish(nodes, s.buildNarrow) {
		return false
	}
	s.readGuess(nodes[0])
	return true
}

// find looks the item's slice up, pins it for this graph call, and counts a hit or a miss. It is false when the slice
// has no slot.
func (s *Store) find(it *item) bool {
	e := &s.tensors[it.tensor]
	if s.trace != nil {
		s.trace(e.Name, e.Layer, it.expert)
	}
	i := e.slot[it.expert]
	if i < 0 {
		s.stats.Misses++
		return false
	}
	it.slot = i
	v := &e.class.slots[i]
	if v.fresh {
		v.fresh = false
		s.stats.Misses++
	} else {
		s.stats.Hits++
	}
	v.pin = s.gen
	e.class.touch(i)
	return true
}

// request starts the reads of items without a slot, while there are slots. All lanes share each slice, so that slices
// arrive one after the other and not several late together.
func (s *Store) request(missing int) {
	if missing == 0 {
		return
	}
	for i := range s.work.items {
		it := &s.work.items[i]
		if it.slot >= 0 || it.done {
			continue
		}
		if it.slot = s.take(it.tensor, it.expert, s.gen); it.slot < 0 {
			continue // no slot of its class is free; asked again when one is
		}
		s.fetch(it.tensor, it.slot, s.cfg.Lanes)
	}
}

// readAhead starts reading what the layer's next stage needs: the experts are known, the input is not yet.
func (s *Store) readAhead(node *llama.Tensor) {
	t := tensorOf(node)
	if s.tensors[t].Role != In {
		return
	}
	for _, o := range s.tensors[t].out {
		e := &s.tensors[o]
		for k := range int(node.Src[2].Ne[0]) {
			expert := idAt(node, k, 0)
			if i := e.slot[expert]; i >= 0 {
				e.class.touch(i)
				e.class.slots[i].pin = s.gen + 1
				continue
			}
			i := s.take(o, expert, s.gen+1)
			if i < 0 {
				return
			}
			e.class.slots[i].fresh = true
			s.fetch(o, i, s.cfg.Lanes)
		}
	}
}

// finish computes every item: with overlap what is ready first and the rest as it arrives, without it all at once after
// the last read. Where there are fewer slots than items, a computed item's slot serves the next.
func (s *Store) finish(nodes []*llama.Tensor, build func(nodes []*llama.Tensor) bool) bool {
	w := &s.work
	for {
		left, unread, computable := 0, 0, 0
		for i := range w.items {
			it := &w.items[i]
			switch {
			case it.done:
			case it.slot < 0:
				left++
				unread++
			case s.tensors[it.tensor].class.slots[it.slot].state == ready:
				left++
				computable++
			default:
				left++
			}
		}
		if unread == 0 {
			s.readAheadWide()
		}
		if left == 0 {
			return true
		}
		if computable == 0 && s.inflight == 0 {
			s.request(unread)
			if s.inflight == 0 {
				s.err = errors.New("the expert cache has no slot for a slice that must be read")
				return false
			}
		}
		if computable == 0 || !s.cfg.Overlap && computable < left-unread {
			if !s.await() {
				return false
			}
			continue
		}
		start := time.Now()
		ok := build(nodes)
		s.stats.Compute += time.Since(start)
		if !ok {
			return false
		}
		if s.abort.Load() || !s.drain() {
			return false
		}
		if unread > 0 {
			s.request(unread)
		}
	}
}

// isReady tells an item that can be computed now.
func (s *Store) isReady(it *item) bool {
	return !it.done && it.slot >= 0 && s.tensors[it.tensor].class.slots[it.slot].state == ready
}

// buildNarrow computes the ready items, two positions of a node to a matmul: ggml loops over all of a matmul's experts on
// every thread, so a view over the whole pool would cost more than it saves, and any two slots are one stride apart.
func (s *Store) buildNarrow(nodes []*llama.Tensor) bool {
	w := &s.work
	w.reset()
	var pair *item
	for i := range w.items {
		it := &w.items[i]
		if !s.isReady(it) {
			continue
		}
		if w.n == maxNodes-1 {
			break
		}
		it.done = true
		switch {
		case pair == nil:
			pair = it
		case pair.node == it.node:
			s.addNarrow(nodes[it.node], pair, it)
			pair = nil
		default:
			s.addNarrow(nodes[pair.node], pair, nil)
			pair = it
		}
	}
	if pair != nil {
		s.addNarrow(nodes[pair.node], pair, nil)
	}
	if s.cfg.Overlap && !s.ahead.asked {
		s.ahead.asked = true
		s.look(nodes[0])
	}
	if !s.run(s.cfg.Threads) {
		return false
	}
	s.release()
	return true
}

// starved reports whether an item waits for a slot.
func (s *Store) starved() bool {
	for i := range s.work.items {
		if it := &s.work.items[i]; !it.done && it.slot < 0 {
			return true
		}
	}
	return false
}

// release lets go of the slots of computed items, for whoever waits for one.
func (s *Store) release() {
	for i := range s.work.items {
		it := &s.work.items[i]
		if it.done && it.slot >= 0 {
			v := &s.tensors[it.tensor].class.slots[it.slot]
			v.pin = min(v.pin, s.gen-1)
			it.slot = -1
		}
	}
}

// addNarrow adds the matmul of one position of the node, or of two. The weights become a view of one or two slots, a
// stride apart; input and result become views of the positions' rows.
func (s *Store) addNarrow(node *llama.Tensor, a, b *item) {
	w := &s.work
	n, as, ids := w.tensor(node), w.tensor(node.Src[0]), w.tensor(node.Src[2])
	count := int64(1)
	at := s.address(a.tensor, a.slot)
	id := w.ids[w.idsUsed:][:2]
	w.idsUsed += 2
	id[0], id[1] = 0, 1
	step := uint64(as.Nb[2])
	if b != nil {
		count = 2
		other := s.address(b.tensor, b.slot)
		if other < at {
			at, other = other, at
			id[0], id[1] = 1, 0
		}
		if other == at { // one expert at two positions
			id[1] = 0
			count = 2
		}
		step = uint64(other - at)
	}
	as.Data, as.Buffer, as.Extra, as.ViewSrc = llama.Pointer(at), 0, 0, nil
	as.Ne[2] = count
	as.Nb[2] = step
	as.Nb[3] = step * uint64(count)
	if step == 0 {
		as.Ne[2], as.Nb[2] = 1, node.Src[0].Nb[2]
		as.Nb[3] = as.Nb[2]
	}
	ids.Data, ids.ViewSrc = unsafe.Pointer(&id[0]), nil
	ids.Ne = [4]int64{count, 1, 1, 1}
	ids.Nb = [4]uint64{4, 4 * uint64(count), 4 * uint64(count), 4 * uint64(count)}

	n.Src[0], n.Src[2] = as, ids
	n.ViewSrc = nil
	n.Data = unsafe.Add(node.Data, uint64(a.first)*node.Nb[1])
	n.Ne[1] = count
	if b != nil {
		n.Nb[1] = uint64(b.first-a.first) * node.Nb[1]
	}
	if in := node.Src[1]; in.Ne[1] > 1 {
		v := w.tensor(in)
		v.Data = unsafe.Add(in.Data, uint64(a.first)*in.Nb[1])
		v.Ne[1] = count
		v.ViewSrc = nil
		if b != nil {
			v.Nb[1] = uint64(b.first-a.first) * in.Nb[1]
		}
		n.Src[1] = v
	}
	w.add(n)
}
