// Package model is a model's profile: what there is to know about a model for planning and running it, without loading
// it. A profile comes from a model file or from JSON, and names no directory and no user.
//
// It knows nothing of machines, plans or llama.cpp's memory; those read it.
package model

import (
	"github.com/bmoe/bmoe/core/gguf"
)

// Profile is a model. It holds facts as the file states them; everything that follows from them is a method. Make one
// with New, Read or Load: they check it and fill in what tensors' names say.
//
// Sizes are bytes. "Loaded" is what llama.cpp loads: all but the multi-token-prediction block.
type Profile struct {
	Name         string   `json:"name"`                            // as the file calls the model; may be empty
	Architecture string   `json:"architecture"`                    // as in llama.cpp
	Context      int      `json:"context"`                         // tokens the model was trained for
	Embedding    int      `json:"embedding"`                       // elements of a token's vector
	Vocab        int      `json:"vocab"`                           // tokens in the vocabulary
	Layers       int      `json:"layers"`                          // loaded
	ExpertCount  int      `json:"expert_count"`                    // experts in a layer that has any; 0 for a dense model
	ExpertUsed   int      `json:"expert_used"`                     // of which a token is routed to so many; 0 for a dense model
	UsedPerLayer []int    `json:"expert_used_per_layer,omitempty"` // the same for each layer, where they differ; ExpertUsed is then the largest
	MTPLayers    int      `json:"mtp_layers"`                      // layers of a trailing multi-token-prediction block, which is never loaded
	MTPBytes     int64    `json:"mtp_bytes"`                       // its tensors
	Shards       []Shard  `json:"shards"`
	Tensors      []Tensor `json:"tensors,omitempty"` // loaded, in file order
}

// Shard is one of the model's files.
type Shard struct {
	Name  string `json:"name"` // without directory
	Bytes int64  `json:"bytes"`
}

// Tensor is a loaded tensor.
type Tensor struct {
	Name   string    `json:"name"`
	Type   gguf.Type `json:"type"`
	Dims   [4]int64  `json:"dims"`   // elements per dimension, fastest first; 1 where there is none
	Shard  int       `json:"shard"`  // index into Profile.Shards
	Offset int64     `json:"offset"` // bytes from the start of the shard

	Layer int  `json:"-"` // that the name states; -1 for tensors of no layer
	Kind  Kind `json:"-"` // that the name states
}

// Bytes is the tensor's size.
func (t Tensor) Bytes() int64 {
	n, _ := t.Type.Size(t.Dims) // New has checked it
	return n
}

// Elements is how many numbers the tensor holds.
func (t Tensor) Elements() int64 { return t.Dims[0] * t.Dims[1] * t.Dims[2] * t.Dims[3] }

// DenseBytes is the size of all loaded tensors but the streamed experts.
func (p *Profile) DenseBytes() int64 { return p.Shaped(Whole).Bytes + p.Shaped(Rows).Bytes }

// FileBytes is the size of all shards.
func (p *Profile) FileBytes() int64 {
	var n int64
	for _, s := range p.Shards {
		n += s.Bytes
	}
	return n
}

// Tensor finds a loaded tensor by name.
func (p *Profile) Tensor(name string) (Tensor, bool) {
	for _, t := range p.Tensors {
		if t.Name == name {
			return t, true
		}
	}
	return Tensor{}, false
}

// TiedHead reports whether the token embedding is the output head too, as llama.cpp takes it where the file has no other.
func (p *Profile) TiedHead() bool {
	_, head := p.Tensor("output.weight")
	_, embedding := p.Tensor("token_embd.weight")
	return embedding && !head
}

// LayerBytes is how large a layer is.
type LayerBytes struct {
	Experts int64 // streamed experts
	Other   int64 // everything else
}

// LayerBytes lists all layers, the first at 0.
func (p *Profile) LayerBytes() []LayerBytes {
	layers := make([]LayerBytes, p.Layers)
	for _, t := range p.Tensors {
		switch {
		case t.Kind != NotExpert:
			layers[t.Layer].Experts += t.Bytes()
		case t.Layer >= 0:
			layers[t.Layer].Other += t.Bytes()
		}
	}
	return layers
}

// LargestLayer is what a place that takes one layer at a time must hold: the largest layer's experts, and the most that any
// layer has besides.
func (p *Profile) LargestLayer() LayerBytes {
	var most LayerBytes
	for _, l := range p.LayerBytes() {
		most.Experts = max(most.Experts, l.Experts)
		most.Other = max(most.Other, l.Other)
	}
	return most
}

// LeadingDense is the number of layers before the first that has experts; all of them for a dense model.
func (p *Profile) LeadingDense() int {
	for i, l := range p.LayerBytes() {
		if l.Experts > 0 {
			return i
		}
	}
	return p.Layers
}

// Widest is the tensor with most elements of those that a token reads whole, usually the output head. A backend that
// unpacks a matrix to 32-bit floats may hold 4 bytes for each. It is the zero Tensor if there is none.
func (p *Profile) Widest() Tensor {
	var widest Tensor
	for _, t := range p.Tensors {
		if p.Shape(t) == Whole && t.Elements() > widest.Elements() {
			widest = t
		}
	}
	return widest
}
