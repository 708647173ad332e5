package demo

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestACommandEntersTheGroupBeforeItRuns(t *testing.T) {
	t.Parallel()
	g := &group{path: t.TempDir()}
	procs := filepath.Join(g.path, "cgroup.procs")
	var out bytes.Buffer
	cmd := g.command(t.Context(), "sh", "-c", `cat "$1"; echo " $$ $2"`, "name", procs, "two words")
	cmd.Stdout = &out
	require.NoError(t, cmd.Run())
	var written, pid int
	var rest string
	_, err := fmt.Sscan(out.String(), &written, &pid, &rest)
	require.NoError(t, err)
	assert.Equal(t, pid, written, "the program itself is in the group")
	assert.Equal(t, "two", rest)

	require.Error(t, (&group{path: filepath.Join(g.path, "absent")}).command(t.Context(), "true").Run(), "outside the group it does not run")
}
