package probe

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/llama"
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

func TestReadRateIsMeasuredInTheModelsOwnType(t *testing.T) {
	for _, name := range []string{"qwen3moe-20m", "gpt-oss-20m", "qwen3moe-kquant-20m", "qwen3moe-iq-20m"} {
		m := profileOf(t, name)
		f, err := ReadRate(t.Context(), libraries, m, 1, 4<<30)
		require.NoError(t, err)
		rate, known := f.Get()
		require.True(t, known, "%s: %s", name, f.From())
		assert.Greater(t, rate, 1e7, name)
		assert.Contains(t, f.From(), m.ExpertTypes()[0].Type.String())
	}
}

func TestReadRateIsUnknownWithAReason(t *testing.T) {
	m := profileOf(t, "qwen3moe-20m")
	f, err := ReadRate(t.Context(), func() (*llama.Library, error) { return nil, errors.New("no library") }, m, 1, 4<<30)
	require.NoError(t, err)
	assert.False(t, f.Known())
	assert.Equal(t, "no library", f.From())

	f, err = ReadRate(t.Context(), libraries, m, 1, 1<<20)
	require.NoError(t, err)
	assert.False(t, f.Known())
	assert.Contains(t, f.From(), "too few")
}

func TestReadRateEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := ReadRate(ctx, libraries, profileOf(t, "qwen3moe-20m"), 1, 4<<30)
	require.ErrorIs(t, err, context.Canceled)
}
