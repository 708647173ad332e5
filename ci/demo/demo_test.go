package demo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tree makes the files of a control group file system.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return root
}

func TestConfineKnowsBothVersions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, limit, peak string
		files             map[string]string
	}{
		{"v1", "memory.limit_in_bytes", "memory.max_usage_in_bytes", map[string]string{"memory/cgroup.procs": ""}},
		{"v2", "memory.max", "memory.peak", map[string]string{"cgroup.procs": "", "cgroup.subtree_control": "cpu memory pids\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g, err := confine(tree(t, c.files), 1<<30)
			require.NoError(t, err)
			got, err := os.ReadFile(filepath.Join(g.path, c.limit))
			require.NoError(t, err)
			assert.Equal(t, "1073741824", string(got))

			assert.Zero(t, g.peak(), "nothing is known before the system says it")
			require.NoError(t, os.WriteFile(filepath.Join(g.path, c.peak), []byte("123456\n"), 0o644))
			assert.Equal(t, int64(123456), g.peak())
		})
	}
}

func TestConfineSaysWhyItCannot(t *testing.T) {
	t.Parallel()
	_, err := confine(tree(t, nil), 1<<30)
	require.ErrorContains(t, err, "no control groups")

	_, err = confine(tree(t, map[string]string{"cgroup.subtree_control": "cpu pids\n"}), 1<<30)
	require.ErrorContains(t, err, "memory controller")
}

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
