// Package calibration holds the test models' routing to the published cache curve, as the engine sees it.
package calibration

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/engine"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/tests/synth"
)

// The published curve: which share of slice reads an LRU cache serves on a 256-token generation, by the share of the
// experts it holds.
var curve = []struct{ held, least, most float64 }{
	{0.13, 0.55, 0.68},
	{0.29, 0.75, 0.85},
}

func TestRoutingFollowsThePublishedCurve(t *testing.T) {
	spec, err := synth.Named("calibrated-50m")
	require.NoError(t, err)
	files, err := synth.Write(context.Background(), filepath.Join(t.TempDir(), "model.gguf"), spec, nil)
	require.NoError(t, err)
	profile, err := model.Read(files[0])
	require.NoError(t, err)
	slice := map[string]int64{}
	for e := range profile.Experts() {
		slice[e.Name] = e.SliceBytes()
	}

	for _, point := range curve {
		cache := int64(point.held * float64(profile.ExpertBytes()))
		s, err := engine.Open(context.Background(), engine.Config{
			Model: files[0], Context: 512, Ubatch: 512, Threads: 2, Stream: true, CacheBytes: cache, Overlap: true, Direct: true,
		})
		require.NoError(t, err)
		var accesses []synth.Access
		s.Store().Trace(func(tensor string, _ int, expert int32) {
			accesses = append(accesses, synth.Access{Tensor: tensor, Expert: int(expert), Bytes: slice[tensor]})
		})
		tokens := []int32{1}
		for range 256 {
			row, err := s.Eval(context.Background(), tokens)
			require.NoError(t, err)
			best := 0
			for i := range row {
				if row[i] > row[best] {
					best = i
				}
			}
			tokens = []int32{int32(best)}
		}
		stats := s.Store().Stats()
		require.NoError(t, s.Close())

		rate := synth.LRUHitRate(accesses, profile.ExpertBytes(), point.held)
		own := float64(stats.Hits) / float64(stats.Hits+stats.Misses)
		t.Logf("%.0f%% held: %.3f of the reads served by LRU, %.3f by the engine's cache", 100*point.held, rate, own)
		assert.GreaterOrEqual(t, rate, point.least)
		assert.LessOrEqual(t, rate, point.most)
		// The engine's slots are a little larger than a slice, so it holds a little less.
		assert.InDelta(t, rate, own, 0.05, "the engine's cache is no LRU cache of that size")
	}
}
