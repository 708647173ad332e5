package cgroup

import (
	"bytes"
	"fmt"
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

func TestNewKnowsBothVersions(t *testing.T) {
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
			g, err := New(tree(t, c.files), "group", 1<<30)
			require.NoError(t, err)
			got, err := os.ReadFile(filepath.Join(g.path, c.limit))
			require.NoError(t, err)
			assert.Equal(t, "1073741824", string(got))

			assert.Zero(t, g.Peak(), "nothing is known before the system says it")
			require.NoError(t, os.WriteFile(filepath.Join(g.path, c.peak), []byte("123456\n"), 0o644))
			assert.Equal(t, int64(123456), g.Peak())
		})
	}
}

func TestNewSaysWhyItCannot(t *testing.T) {
	t.Parallel()
	_, err := New(tree(t, nil), "group", 1<<30)
	require.ErrorContains(t, err, "no control groups")

	_, err = New(tree(t, map[string]string{"cgroup.subtree_control": "cpu pids\n"}), "group", 1<<30)
	require.ErrorContains(t, err, "memory controller")
}

func TestCommandEntersTheGroupBeforeItRuns(t *testing.T) {
	t.Parallel()
	g := &Group{path: t.TempDir()}
	procs := filepath.Join(g.path, "cgroup.procs")
	var out bytes.Buffer
	cmd := g.Command(t.Context(), "sh", "-c", `cat "$1"; echo " $$ $2"`, "name", procs, "two words")
	cmd.Stdout = &out
	require.NoError(t, cmd.Run())
	var written, pid int
	var rest string
	_, err := fmt.Sscan(out.String(), &written, &pid, &rest)
	require.NoError(t, err)
	assert.Equal(t, pid, written, "the program itself is in the group")
	assert.Equal(t, "two", rest)

	absent := &Group{path: filepath.Join(g.path, "absent")}
	require.Error(t, absent.Command(t.Context(), "true").Run(), "outside the group it does not run")
	require.NoError(t, absent.Remove(), "a group that is gone needs no removing")
}
