package model

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/bmoe/bmoe/core/gguf"
)

// Kind says which of a layer's streamed expert tensors a tensor is, if any.
type Kind string

// The expert tensors of a layer. An architecture has up and down and, mostly, gate; or gate and up fused in one tensor.
const (
	NotExpert Kind = ""
	Gate      Kind = "gate"
	Up        Kind = "up"
	GateUp    Kind = "gate_up"
	Down      Kind = "down"
)

// ExpertKind is the one place that says which tensors are streamed experts: the weights of the routed experts, stacked
// into one tensor per layer, of which llama.cpp's MUL_MAT_ID reads a slice per routed expert. The layer is -1 for all
// others.
//
// Biases and scales of the experts are not: other operations read them, and they are small. Neither are shared experts
// (ffn_up_shexp), which every token uses, nor the small chunk experts of one architecture (ffn_up_chexps).
func ExpertKind(tensor string) (layer int, kind Kind) {
	layer, rest := block(tensor)
	if layer < 0 {
		return -1, NotExpert
	}
	switch rest {
	case "ffn_gate_exps.weight":
		return layer, Gate
	case "ffn_up_exps.weight":
		return layer, Up
	case "ffn_gate_up_exps.weight":
		return layer, GateUp
	case "ffn_down_exps.weight":
		return layer, Down
	}
	return -1, NotExpert
}

// ExpertPattern is a regular expression (ECMAScript's, and Go's) that finds the expert tensors of one layer, or of every
// layer if layer is negative.
func ExpertPattern(layer int) string {
	number := "[0-9]+"
	if layer >= 0 {
		number = strconv.Itoa(layer)
	}
	return fmt.Sprintf(`^blk\.%s\.ffn_(gate|up|gate_up|down)_exps\.weight$`, number)
}

// block splits "blk.12.attn_q.weight" into 12 and "attn_q.weight". A tensor of no block gets -1 and its whole name.
func block(tensor string) (layer int, rest string) {
	if after, found := strings.CutPrefix(tensor, "blk."); found {
		if number, rest, found := strings.Cut(after, "."); found {
			if n, err := strconv.ParseUint(number, 10, 16); err == nil {
				return int(n), rest
			}
		}
	}
	return -1, tensor
}

// Experts yields every streamed expert tensor in file order.
func (p *Profile) Experts() iter.Seq[Tensor] {
	return func(yield func(Tensor) bool) {
		for _, t := range p.Tensors {
			if t.Kind != NotExpert && !yield(t) {
				return
			}
		}
	}
}

// Slices is how many experts the tensor holds.
func (t Tensor) Slices() int { return int(t.Dims[2]) }

// SliceBytes is the size of one expert's part of the tensor. Slice n begins at Offset + n*SliceBytes.
func (t Tensor) SliceBytes() int64 { return t.Bytes() / max(1, t.Dims[2]) }

// TokenCycle is the bytes of experts that one token demands: over every layer, one slice of each of its expert tensors
// times the routing width. used overrides the model's own width; 0 leaves it. A cache below the token cycle evicts what
// the same token still needs, and hits nothing.
func (p *Profile) TokenCycle(used int) int64 {
	var cycle int64
	for t := range p.Experts() {
		width := used
		if used <= 0 {
			width = p.UsedAt(t.Layer)
		}
		cycle += t.SliceBytes() * int64(min(width, t.Slices()))
	}
	return cycle
}

// UsedAt is the model's own routing width in a layer.
func (p *Profile) UsedAt(layer int) int {
	if len(p.UsedPerLayer) > 0 {
		return p.UsedPerLayer[layer]
	}
	return p.ExpertUsed
}

// ExpertBytes is the size of all streamed experts.
func (p *Profile) ExpertBytes() int64 { return p.Shaped(Slice).Bytes }

// ExpertShard is the shard with most expert bytes, where a probe of the storage has to read, or -1 for a dense model. The
// first shard may hold metadata alone.
func (p *Profile) ExpertShard() int {
	bytes := make([]int64, len(p.Shards))
	most := -1
	for t := range p.Experts() {
		bytes[t.Shard] += t.Bytes()
		if most < 0 || bytes[t.Shard] > bytes[most] {
			most = t.Shard
		}
	}
	return most
}

// TypeBytes is a tensor type and how many bytes come in it.
type TypeBytes struct {
	Type  gguf.Type
	Bytes int64
}

// ExpertTypes lists the types of the expert tensors, the one with most bytes first.
func (p *Profile) ExpertTypes() []TypeBytes {
	bytes := make(map[gguf.Type]int64)
	for t := range p.Experts() {
		bytes[t.Type] += t.Bytes()
	}
	var types []TypeBytes
	for t, n := range bytes {
		types = append(types, TypeBytes{t, n})
	}
	slices.SortFunc(types, func(a, b TypeBytes) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Type, b.Type))
	})
	return types
}

// SliceSize is the slice size that makes up most of the token cycle, in bytes: the read whose rate matters most. Of two
// that make up as much it is the larger; it is 0 for a dense model.
func (p *Profile) SliceSize() int64 {
	cycle := make(map[int64]int64) // by slice size
	var most int64
	for t := range p.Experts() {
		cycle[t.SliceBytes()] += t.SliceBytes() * int64(p.UsedAt(t.Layer))
	}
	for size, bytes := range cycle {
		if bytes > cycle[most] || bytes == cycle[most] && size > most {
			most = size
		}
	}
	return most
}

// Fused reports whether a layer has gate and up in one tensor.
func (p *Profile) Fused() bool {
	for t := range p.Experts() {
		if t.Kind == GateUp {
			return true
		}
	}
	return false
}
