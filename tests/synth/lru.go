package synth

import "container/list"

// Access is one use of a slice: an expert's part of one tensor.
type Access struct {
	Tensor string
	Expert int
	Bytes  int64
}

// LRUHitRate is the share of the accesses, in their order, that a cache of slices finds, when it may hold the given
// fraction of all expert bytes, starts empty and drops what was not used for the longest time. It is what a real cache
// is measured against and what the locality of a model is calibrated with.
func LRUHitRate(accesses []Access, expertBytes int64, fraction float64) float64 {
	if len(accesses) == 0 {
		return 0
	}
	type slice struct {
		tensor string
		expert int
	}
	capacity := int64(fraction * float64(expertBytes))
	order := list.New() // of Access, the latest used first
	held := make(map[slice]*list.Element)
	var bytes int64
	hits := 0
	for _, a := range accesses {
		key := slice{a.Tensor, a.Expert}
		if e, ok := held[key]; ok {
			order.MoveToFront(e)
			hits++
			continue
		}
		held[key] = order.PushFront(a)
		for bytes += a.Bytes; bytes > capacity; {
			old := order.Remove(order.Back()).(Access)
			delete(held, slice{old.Tensor, old.Expert})
			bytes -= old.Bytes
		}
	}
	return float64(hits) / float64(len(accesses))
}
