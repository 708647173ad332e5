package llama

import (
	"archive/tar"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExtractTakesOneFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	archive := filepath.Join(dir, "package-1.0.0.tgz")
	f, err := os.Create(archive)
	require.NoError(t, err)
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	for name, content := range map[string]string{"package/package.json": "{}", "package/llama/gitRelease.bundle": "the bundle"} {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}))
		_, err := w.Write([]byte(content))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, z.Close())
	require.NoError(t, f.Close())

	out := filepath.Join(dir, "out")
	require.NoError(t, extract(archive, "package/llama/gitRelease.bundle", out))
	got, err := os.ReadFile(out)
	require.NoError(t, err)
	assert.Equal(t, "the bundle", string(got))

	require.ErrorContains(t, extract(archive, "package/absent", filepath.Join(dir, "none")), "has no file package/absent")
	require.NoError(t, os.Truncate(archive, 40))
	require.Error(t, extract(archive, "package/llama/gitRelease.bundle", filepath.Join(dir, "cut")))
}
