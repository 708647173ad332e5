package plan

import (
	"github.com/bmoe/bmoe/core/model"
)

// Reserve is what one place holds for a run besides weights.
type Reserve struct {
	Context int64 `json:"context"` // the KV cache and what else grows with the context
	Compute int64 `json:"compute"` // buffers of the widest graph
}

// Projection is what the placed model was projected to reserve at a graph Width tokens wide and at half of that. The two
// give what a token of width costs, so that any width between can be priced.
type Projection struct {
	Width   int                    `json:"width"` // 0: nobody projected
	At      Reserve                `json:"at"`    // on the host
	Half    Reserve                `json:"half"`  // 0: the slope is not known
	Devices map[string]DeviceWidth `json:"devices"`
	Why     string                 `json:"why,omitempty"` // where it came from or, where nobody projected, what stood in the way
}

// DeviceWidth is the compute buffers of a device that would run a prefill, at the two widths. Both are 0 for one that
// layers are never placed on.
type DeviceWidth struct {
	At   int64 `json:"at"`
	Half int64 `json:"half"`
}

// sloped says whether the price of a token of width is known.
func (p Projection) sloped() bool { return p.Width > 1 && p.Half.Compute > 0 }

// atWidth is the line through the two points.
func atWidth(at, half int64, full, width int) int64 {
	if width == full || half <= 0 {
		return at
	}
	perToken := float64(at-half) / float64(full-full/2)
	return max(0, at-int64(perToken*float64(full-width)))
}

// cacheElement is the bytes of an element of the KV cache by its type. (Blocks of 32 with their scales.)
var cacheElement = map[string]float64{
	"f32": 4, "f16": 2, "bf16": 2, "q8_0": 34. / 32, "q5_1": 24. / 32, "q5_0": 22. / 32,
	"q4_1": 20. / 32, "q4_0": 18. / 32, "iq4_nl": 18. / 32,
}

// derivedReserve stands in for a projection nobody made, from the model's shape, and is meant to be too high: the keys and
// values of the context (where the tensors do not tell, a row of the model's width of each in every layer), and the buffers
// of a graph.
func derivedReserve(m *model.Profile, context, width int, typeK, typeV string, p Policy) Reserve {
	k, v := cacheElement[typeK], cacheElement[typeV]
	kv := bounded(float64(m.KVBytes(context, k, v)))
	if kv <= 0 {
		kv = bounded(float64(m.Layers) * float64(m.Embedding) * (k + v) * float64(context))
	}
	return Reserve{Context: kv, Compute: derivedCompute(m, context, width, p) + 4*int64(m.Vocab)}
}

// derivedCompute is the activations of a graph: for a token, a number of 32-bit rows of the model's width (policy), the rows
// of the experts it is routed to, and its row of the attention mask in two types.
func derivedCompute(m *model.Profile, context, width int, p Policy) int64 {
	embedding, routed := int64(m.Embedding), int64(m.ExpertUsed)
	var hidden int64 // rows of an expert's hidden layer
	for t := range m.Experts() {
		hidden = max(hidden, t.Dims[1])
	}
	perToken := 4*(int64(p.ActivationRows)*embedding+routed*(2*embedding+3*hidden)) + 6*int64(context)
	return bounded(float64(perToken) * float64(width))
}

// bounded is bytes as a whole number, up to more than any machine has: a context set by hand may be of any length.
func bounded(bytes float64) int64 { return int64(min(bytes, 1<<56)) }

// reserve is what the host holds besides weights, at a width, and whether that was projected.
func (s *state) reserve(width int) (r Reserve, projected bool) {
	p := s.projection()
	if p.Width == 0 {
		return derivedReserve(s.Model, s.context, width, s.set.String("cache-type-k"), s.set.String("cache-type-v"), s.policy), false
	}
	return Reserve{p.At.Context, atWidth(p.At.Compute, p.Half.Compute, p.Width, width)}, true
}

// projection is that of the run: of the placed model where the placement is taken, else of the host alone.
func (s *state) projection() Projection {
	if s.Placement.Placed.Width > 0 && s.applies() {
		return s.Placement.Placed
	}
	return s.Placement.Projection
}

// deviceCompute is what a device that runs a prefill holds for buffers, at a width.
func (s *state) deviceCompute(name string, width int) int64 {
	d, ok := s.Placement.Projection.Devices[name]
	if !ok {
		return derivedCompute(s.Model, s.context, width, s.policy)
	}
	return atWidth(d.At, d.Half, s.Placement.Projection.Width, width)
}
