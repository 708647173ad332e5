package probe

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/llama"
	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/platform/process"
	"github.com/bmoe/bmoe/tests/synth"
)

func libraries() (*llama.Library, error) {
	exe, err := process.Executable()
	if err != nil {
		return nil, err
	}
	return llama.Load(filepath.Dir(exe))
}

func profileOf(t *testing.T, name string) *model.Profile {
	t.Helper()
	spec, err := synth.Named(name)
	require.NoError(t, err)
	files, err := synth.Write(context.Background(), filepath.Join(t.TempDir(), "m.gguf"), spec, nil)
	require.NoError(t, err)
	p, err := model.Read(files[0])
	require.NoError(t, err)
	return p
}

// here is a machine with so much available, on one core.
func here(available int64) machine.Profile {
	return machine.Profile{
		Memory: machine.Memory{Available: machine.Known(available, "the test's word")},
		Cores:  machine.Cores{Physical: machine.Known(1, "the test's word")},
	}
}

func TestRatesAreMeasuredInTheModelsOwnType(t *testing.T) {
	for _, name := range []string{"qwen3moe-20m", "gpt-oss-20m", "qwen3moe-kquant-20m", "qwen3moe-iq-20m"} {
		m := profileOf(t, name)
		read, wide, err := Processor{libraries}.Rates(t.Context(), Request{Model: m}, here(4<<30))
		require.NoError(t, err)
		for tokens, f := range map[string]machine.Fact[float64]{"one token": read, "128 tokens": wide} {
			rate, known := f.Get()
			require.True(t, known, "%s: %s", name, f.From())
			assert.Greater(t, rate, 1e4, name)
			assert.Contains(t, f.From(), "the matmul of "+tokens+" with "+m.ExpertTypes()[0].Type.String()+" experts of ")
			assert.Contains(t, f.From(), "on one thread")
		}
	}
}

func TestRatesAreUnknownWithAReason(t *testing.T) {
	m := profileOf(t, "qwen3moe-20m")
	dense := &model.Profile{}
	for why, c := range map[string]struct {
		load    func() (*llama.Library, error)
		request Request
		on      machine.Profile
	}{
		"no library":                {func() (*llama.Library, error) { return nil, errors.New("no library") }, Request{Model: m}, here(4 << 30)},
		"too few":                   {libraries, Request{Model: m}, here(1 << 20)},
		"0 MiB to measure in":       {libraries, Request{Model: m, Memory: 1 << 20}, here(4 << 30)},
		"the model has no experts":  {libraries, Request{Model: dense}, here(4 << 30)},
		"the model has no experts ": {libraries, Request{}, here(4 << 30)},
	} {
		read, wide, err := Processor{c.load}.Rates(t.Context(), c.request, c.on)
		require.NoError(t, err)
		for _, f := range []machine.Fact[float64]{read, wide} {
			assert.False(t, f.Known())
			assert.Contains(t, f.From(), strings.TrimSpace(why))
		}
	}
}

func TestRatesEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := Processor{libraries}.Rates(ctx, Request{Model: profileOf(t, "qwen3moe-20m")}, here(4<<30))
	require.ErrorIs(t, err, context.Canceled)
}

// The shape that carries most bytes comes first, and each shape once.
func TestMatmulsOf(t *testing.T) {
	m := profileOf(t, "qwen3moe-kquant-20m")
	shapes := matmulsOf(m)
	require.NotEmpty(t, shapes)
	assert.Equal(t, m.ExpertTypes()[0].Type.String(), shapes[0].Type)
	seen := map[matmul]bool{}
	types := map[string]bool{}
	for _, s := range shapes {
		assert.False(t, seen[s])
		seen[s], types[s.Type] = true, true
		assert.Positive(t, s.Slice)
		assert.LessOrEqual(t, s.Used, s.Experts)
	}
	assert.Len(t, types, len(m.ExpertTypes()))
	assert.Empty(t, matmulsOf(nil))
}
