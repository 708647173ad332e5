package plan

import (
	"github.com/bmoe/bmoe/core/model"
)

// share is the part of the model that the host holds and computes: all of it, unless layers are placed on devices.
type share struct {
	experts int64 // bytes
	cycle   int64 // expert bytes one token demands: below this a cache hits nothing
	slice   int64 // bytes of the read that matters most
	whole   model.Access
	rows    model.Access
	layers  int // that have experts
	placed  int64
}

func (s share) dense() int64 { return s.whole.Bytes + s.rows.Bytes }

// swept is what the host reads of its own memory for a token when everything is there.
func (s share) swept() int64 { return s.whole.PerToken + s.rows.PerToken + s.cycle }

func wholeModel(m *model.Profile, used int) share {
	return hostShare(m, used, func(model.Tensor) bool { return true })
}

// hostShare sums up the tensors that are the host's.
func hostShare(m *model.Profile, used int, host func(model.Tensor) bool) share {
	var s share
	var left model.Profile = *m
	left.Tensors = nil
	layers := map[int]bool{}
	for _, t := range m.Tensors {
		if !host(t) {
			s.placed += t.Bytes()
			continue
		}
		left.Tensors = append(left.Tensors, t)
		if t.Kind != model.NotExpert {
			layers[t.Layer] = true
		}
	}
	s.layers = len(layers)
	s.experts, s.cycle, s.slice = left.ExpertBytes(), left.TokenCycle(used), left.SliceSize()
	s.rows = shaped(m, left.Tensors, model.Rows)
	s.whole = shaped(m, left.Tensors, model.Whole)
	return s
}

// shaped sums up tensors of a shape. The whole model is asked for the shape, since a tied head is one of all its tensors.
func shaped(m *model.Profile, tensors []model.Tensor, shape model.Shape) model.Access {
	var a model.Access
	for _, t := range tensors {
		if m.Shape(t) != shape {
			continue
		}
		a.Bytes += t.Bytes()
		if shape == model.Rows {
			a.PerToken += t.Type.Bytes(t.Dims[0])
		} else {
			a.PerToken += t.Bytes()
		}
	}
	return a
}
