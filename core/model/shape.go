package model

// Shape is how a decoded token reads a tensor. It decides what the tensor's residency is worth.
type Shape string

const (
	Whole Shape = "whole" // every byte
	Rows  Shape = "rows"  // one row: a table that is looked up
	Slice Shape = "slice" // a few slices of many: streamed experts
)

// Access is how much there is of a shape, and how much of it a token reads.
type Access struct {
	Bytes    int64
	PerToken int64
}

// tables are the tensors that llama.cpp reads with GET_ROWS only.
var tables = map[string]bool{
	"token_embd.weight":           true,
	"per_layer_token_embd.weight": true,
	"position_embd.weight":        true,
	"token_types.weight":          true,
	"ffn_gate_tid2eid.weight":     true, // of a layer
}

// Shape is how a token reads one of the model's tensors. A token embedding that is the output head too is read whole.
func (p *Profile) Shape(t Tensor) Shape {
	_, rest := block(t.Name)
	switch {
	case t.Kind != NotExpert:
		return Slice
	case tables[rest] && !(rest == "token_embd.weight" && p.TiedHead()):
		return Rows
	}
	return Whole
}

// Shaped sums up the tensors of a shape. A token is taken to read one row of each table, and the model's own number of
// slices of each expert tensor.
func (p *Profile) Shaped(s Shape) Access {
	var a Access
	for _, t := range p.Tensors {
		if p.Shape(t) != s {
			continue
		}
		a.Bytes += t.Bytes()
		switch s {
		case Whole:
			a.PerToken += t.Bytes()
		case Rows:
			a.PerToken += t.Type.Bytes(t.Dims[0])
		case Slice:
			a.PerToken += t.SliceBytes() * int64(min(p.UsedAt(t.Layer), t.Slices()))
		}
	}
	return a
}
