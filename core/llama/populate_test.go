package llama

import (
	"errors"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWithoutPopulate(t *testing.T) {
	l := library(t)
	path := small(t)
	numa := func() bool {
		f := l.ProcAddress(l.DevRegistry(l.CPUDevice()), "ggml_backend_cpu_is_numa")
		require.NotZero(t, f)
		r, _, _ := purego.SyscallN(f)
		return r&0xff != 0
	}
	before := numa()
	threads := l.ProcAddress(l.DevRegistry(l.CPUDevice()), "ggml_backend_set_n_threads")
	logits := func(m *Model) []float32 {
		c := newContext(t, m, 64, 8)
		require.NoError(t, c.Decode([]int32{1, 10, 20}))
		return c.Logits()
	}
	var m *Model
	require.NoError(t, l.WithoutPopulate(func() (err error) {
		assert.True(t, numa())
		assert.Equal(t, threads, l.ProcAddress(l.DevRegistry(l.CPUDevice()), "ggml_backend_set_n_threads"), "other names are passed on")
		assert.Zero(t, l.ProcAddress(l.DevRegistry(l.CPUDevice()), "no_such_function"))
		m, err = l.LoadModel(t.Context(), path, ModelOptions{})
		return err
	}))
	t.Cleanup(m.Free)
	assert.Equal(t, before, numa(), "the answer is the module's own again")
	assert.Equal(t, logits(open(t, ModelOptions{})), logits(m))

	wrong := errors.New("wrong")
	require.ErrorIs(t, l.WithoutPopulate(func() error { return wrong }), wrong)
	assert.Equal(t, before, numa())
}
