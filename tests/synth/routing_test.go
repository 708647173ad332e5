package synth

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

// route sends random states through the routers of a model, as its layers would if their states were independent.
func route(s Spec, tokens int) (accesses []Access, expertBytes int64) {
	const slice = 1000
	routers := make([][][]float32, s.Layers)
	for l := range routers {
		r := newRouter(s, l)
		for e := range s.Experts {
			values := make([]float32, s.Embed)
			r.row(int64(e), values)
			routers[l] = append(routers[l], values)
		}
	}
	random := normals(s.Seed, "states")
	state := make([]float64, s.Embed)
	for range tokens {
		for l, rows := range routers {
			for i := range state {
				state[i] = 1 / streamScale(s, l)
				if i >= anchor {
					state[i] = random.NormFloat64()
				}
			}
			logits := make([]float64, s.Experts)
			order := make([]int, s.Experts)
			for e, row := range rows {
				order[e] = e
				for i, w := range row {
					logits[e] += float64(w) * state[i]
				}
			}
			slices.SortFunc(order, func(a, b int) int {
				if logits[a] > logits[b] {
					return -1
				}
				return 1
			})
			for _, tensor := range []string{"gate", "up", "down"} {
				for _, e := range order[:s.Used] {
					accesses = append(accesses, Access{fmt.Sprint(tensor, l), e, slice})
				}
			}
		}
	}
	return accesses, int64(s.Layers*s.Experts) * 3 * slice
}

func TestRoutersFollowThePublishedCurve(t *testing.T) {
	t.Parallel()
	s := Sized(50e6)
	s.Layers = 4
	accesses, all := route(s, 256)
	assert.InDelta(t, 0.615, LRUHitRate(accesses, all, 0.13), 0.065)
	assert.InDelta(t, 0.80, LRUHitRate(accesses, all, 0.29), 0.05)

	s.Locality = 0
	accesses, all = route(s, 256)
	assert.Less(t, LRUHitRate(accesses, all, 0.13), 0.15, "no locality without the setting")
}

func TestLRUHitRate(t *testing.T) {
	t.Parallel()
	of := func(experts ...int) (list []Access) {
		for _, e := range experts {
			list = append(list, Access{"down", e, 10})
		}
		return list
	}
	for _, test := range []struct {
		name     string
		accesses []Access
		fraction float64 // of 40 bytes
		want     float64
	}{
		{"nothing asked", nil, 1, 0},
		{"no cache", of(1, 1, 1), 0, 0},
		{"smaller than a slice", of(1, 1, 1), 0.2, 0},
		{"everything fits", of(1, 2, 3, 4, 1, 2, 3, 4), 1, 0.5},
		{"a cycle larger than the cache", of(1, 2, 3, 1, 2, 3, 1, 2, 3), 0.5, 0},
		{"the oldest goes", of(1, 2, 1, 3, 1, 2), 0.5, 2. / 6},
		{"a slice is a tensor's", append(of(1), Access{"up", 1, 10}), 1, 0},
		{"larger slices push out more", append(of(1, 2), Access{"up", 1, 20}, Access{"down", 1, 10}), 0.5, 0},
	} {
		assert.InDelta(t, test.want, LRUHitRate(test.accesses, 40, test.fraction), 1e-9, test.name)
	}
}

func TestWordsFollowOneAnother(t *testing.T) {
	t.Parallel()
	for _, embed := range []int{256, 2048} {
		s := small.with(func(s *Spec) { s.Embed = embed })
		h := newHead(s)
		state, row := make([]float32, embed), make([]float32, embed)
		seen := make(map[int64]bool)
		token := int64(firstWord)
		for range vocabulary - firstWord {
			h.embedding(token, state)
			next, best := int64(-1), math.Inf(-1)
			for candidate := range int64(vocabulary) {
				h.output(candidate, row)
				var logit float64
				for i := range row {
					logit += float64(row[i]) * float64(state[i]) / h.end
				}
				if candidate < firstWord {
					assert.Less(t, logit, float64(silence)/2, "token %d is no word", candidate)
				}
				if logit > best {
					next, best = candidate, logit
				}
			}
			seen[next] = true
			token = next
		}
		assert.Greater(t, len(seen), (vocabulary-firstWord)*3/4, "words on the way, embedding %d", embed)
	}
}

func TestVocabulary(t *testing.T) {
	t.Parallel()
	texts, kinds := tokens()
	assert.Len(t, texts, vocabulary)
	assert.Len(t, kinds, vocabulary)
	seen := make(map[string]bool)
	for i, text := range texts {
		assert.False(t, seen[text], "%q is there twice", text)
		seen[text] = true
		if i >= firstWord {
			assert.GreaterOrEqual(t, utf8.RuneCountInString(text), 3, "a prompt could form %q", text)
		}
	}
	assert.Equal(t, "<0x41>", texts[firstByte+'A'])
	assert.Equal(t, space, texts[tokenSpace])
}
