package model

// KVBytes is what the keys and values of so many tokens take, at k and v bytes an element, or 0 where the tensors don't
// tell. Layers that keep a window of the context alone are counted whole.
//
// A layer keeps what its key and value projections give; one with compressed attention keeps the compressed row instead
// (attn_kv_a_mqa), which serves as both.
func (p *Profile) KVBytes(context int, k, v float64) int64 {
	var row float64
	for _, t := range p.Tensors {
		_, rest := block(t.Name)
		switch rest {
		case "attn_k.weight", "attn_kv_a_mqa.weight":
			row += float64(t.Dims[1]) * k
		case "attn_v.weight":
			row += float64(t.Dims[1]) * v
		}
	}
	return int64(row * float64(context))
}
