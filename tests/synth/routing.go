package synth

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Published is the locality at which an LRU cache over slices serves the shares of reads that were published for real
// models: with 13% of the experts held 55 to 68%, with 29% 75 to 85%. It was found for models that use 8 of 128 experts;
// what counts is that ratio.
const Published = 0.9

// router makes the rows of one layer's router.
type router struct {
	seed       uint64
	name       string
	popularity []float64 // per expert, along the anchor
}

// newRouter gives the layer's experts, in an order of its own, a popularity that falls with the square root of the rank.
func newRouter(s Spec, layer int) router {
	r := router{seed: s.Seed, name: fmt.Sprint("router ", layer), popularity: make([]float64, s.Experts)}
	var sum, squares float64
	for e, rank := range normals(s.Seed, r.name).Perm(s.Experts) {
		p := 1 / math.Sqrt(float64(rank+1))
		r.popularity[e] = p
		sum, squares = sum+p, squares+p*p
	}
	n := float64(s.Experts)
	mean := sum / n
	deviation := math.Sqrt(squares/n - mean*mean)
	for e, p := range r.popularity {
		r.popularity[e] = s.Locality * (p - mean) / deviation * streamScale(s, layer) / anchor
	}
	return r
}

// row makes the router row of an expert: its popularity along the anchor, and weights that give what the token decides
// a standard deviation of 1.
func (r router) row(expert int64, values []float32) {
	random := normals(r.seed, fmt.Sprint(r.name, " expert ", expert))
	deviation := 1 / math.Sqrt(float64(len(values)-anchor))
	for i := range values {
		if i < anchor {
			values[i] = float32(r.popularity[expert])
		} else {
			values[i] = float32(deviation * random.NormFloat64())
		}
	}
}

// streamScale is about the root mean square of the residual stream before a layer; the anchor, 1 in the stream, is
// divided by it when the stream is normalized.
func streamScale(s Spec, layer int) float64 { return math.Sqrt(1 + float64(layer)/float64(s.Layers)) }

// head makes the rows of the embedding and of the output matrix, which depend on one another.
type head struct {
	seed        uint64
	embed       int
	end         float64 // root mean square of the stream behind the last layer
	predecessor []int64 // of a word: the token it follows
}

// Scales of the logits. What a word owes to the state at hand has a standard deviation of 1; the word that follows the
// last token gets successor on top; a token that is no word gets silence.
const (
	successor = 9
	silence   = -20
)

func newHead(s Spec) head {
	h := head{seed: s.Seed, embed: s.Embed, end: streamScale(s, s.Layers), predecessor: make([]int64, vocabulary)}
	walk := normals(s.Seed, "walk").Perm(vocabulary - firstWord)
	for i, word := range walk {
		next := walk[(i+1)%len(walk)]
		h.predecessor[firstWord+next] = int64(firstWord + word)
	}
	return h
}

// embedding makes a token's row.
func (h head) embedding(token int64, values []float32) {
	random := h.random("embedding", token)
	for i := range values {
		values[i] = 1
		if i >= anchor {
			values[i] = float32(random.NormFloat64())
		}
	}
}

// output makes a token's row of the output matrix.
func (h head) output(token int64, values []float32) {
	random := h.random("output", token)
	scale := 1 / math.Sqrt(float64(h.embed))
	for i := range values {
		values[i] = float32(scale * random.NormFloat64())
	}
	bias := float32(silence * h.end / anchor)
	if token >= firstWord {
		bias = 0
		leaning := successor * h.end * scale * scale
		before := make([]float32, h.embed)
		h.embedding(h.predecessor[token], before)
		for i := anchor; i < h.embed; i++ {
			values[i] += float32(leaning) * before[i]
		}
	}
	for i := range anchor {
		values[i] = bias
	}
}

func (h head) random(what string, token int64) *rand.Rand {
	return normals(h.seed, fmt.Sprint(what, " ", token))
}
