package demo

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPrepareChecksSizesAndRoom(t *testing.T) {
	t.Parallel()
	d := Demo{Folder: t.TempDir(), ModelBytes: 1 << 30, Memory: 2 << 30}
	require.ErrorContains(t, d.Prepare(), "must be larger")
	minus := -1
	require.ErrorContains(t, New("bin", t.TempDir(), &minus, nil).Prepare(), "above 0")

	d = Demo{Folder: t.TempDir(), ModelBytes: 1 << 54, Memory: 1 << 30}
	require.ErrorContains(t, d.Prepare(), "are free")

	d = Demo{Folder: t.TempDir(), ModelBytes: 20 << 20, Memory: 10 << 20}
	require.NoError(t, d.Prepare())
	require.False(t, d.written())
	require.NoError(t, d.write(t.Context()))
	require.True(t, d.written())
	require.NoError(t, os.Truncate(d.model(), 5))
	assert.False(t, d.written(), "a file of another size is another model")
}
