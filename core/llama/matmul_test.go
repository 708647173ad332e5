package llama

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// typeNamed is ggml's number of a type.
func typeNamed(t *testing.T, l *Library, name string) int32 {
	t.Helper()
	n, err := l.KVType(name)
	require.NoError(t, err)
	return n
}

// The host's own matmul of experts, of every type that can be made, gives the same answer twice; what a row of experts has is
// what a rate counts.
func TestSweepOnTheHost(t *testing.T) {
	l := library(t)
	for _, c := range []struct {
		name  string
		slice int64 // bytes of 64 rows of 256
	}{{"q4_K", 64 * 144}, {"q8_0", 64 * 272}, {"iq2_xxs", 64 * 66}, {"iq1_s", 64 * 50}, {"mxfp4", 64 * 136}, {"f16", 64 * 512}, {"f32", 64 * 1024}} {
		for _, width := range []int{1, 128} {
			m := ExpertMatmul{Type: typeNamed(t, l, c.name), Columns: 256, Rows: 64, Slice: c.slice, Used: 4, Width: width, Experts: 16, Memory: 1 << 20, Threads: 2}
			s, err := l.NewSweep(l.CPUDevice(), m)
			require.NoError(t, err, c.name)
			assert.False(t, s.Repacked)
			one, err := s.Answer()
			require.NoError(t, err)
			assert.Len(t, one, 64*4*width)
			var sum float64
			for _, v := range one {
				sum += float64(v) * float64(v)
			}
			assert.InDelta(t, 256, sum/float64(len(one)), 128, "%s: inputs and weights of variance one", c.name)
			two, err := s.Answer()
			require.NoError(t, err)
			assert.Equal(t, one, two)
			rate, spread, err := s.Rate(t.Context())
			require.NoError(t, err)
			assert.Positive(t, rate)
			assert.GreaterOrEqual(t, spread, 1.0)
			s.Free()
		}
	}
}

func TestSweepOfNoShape(t *testing.T) {
	l := library(t)
	m := ExpertMatmul{Type: typeNamed(t, l, "q8_0"), Columns: 256, Rows: 64, Slice: 64 * 272, Used: 4, Width: 1, Memory: 1 << 20, Threads: 1}
	for name, change := range map[string]func(*ExpertMatmul){
		"no rows":       func(m *ExpertMatmul) { m.Rows = 0 },
		"no tokens":     func(m *ExpertMatmul) { m.Width = 0 },
		"half a row":    func(m *ExpertMatmul) { m.Slice++ },
		"no such thing": func(m *ExpertMatmul) { m.Type = typeNamed(t, l, "q8_K"); m.Slice = 64 * 292 },
	} {
		wrong := m
		change(&wrong)
		_, err := l.NewSweep(l.CPUDevice(), wrong)
		assert.Error(t, err, name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, err := l.NewSweep(l.CPUDevice(), m)
	require.NoError(t, err)
	defer s.Free()
	_, _, err = s.Rate(ctx)
	assert.ErrorIs(t, err, context.Canceled)
	_, err = s.Crossing(ctx)
	assert.ErrorIs(t, err, context.Canceled)
	crossing, err := s.Crossing(t.Context())
	require.NoError(t, err)
	assert.GreaterOrEqual(t, crossing.Nanoseconds(), int64(0))
}

// The host's device wraps the host's memory and says so.
func TestWhatTheHostSaysOfItself(t *testing.T) {
	l := library(t)
	p := l.Properties(l.CPUDevice())
	assert.True(t, p.HostPointer)
	require.NoError(t, l.WrapsHostMemory(l.CPUDevice()))
	release, err := l.Hold(l.CPUDevice(), 1<<20)
	require.NoError(t, err)
	release()
	_, err = l.Hold(l.CPUDevice(), 1<<60)
	require.ErrorContains(t, err, "it allocates no ")
	assert.Positive(t, l.LargestBuffer(l.CPUDevice()))
}
