package state

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every system's answer is an absolute directory that is the program's own.
func TestDir(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "USERPROFILE", "LocalAppData"} {
		t.Setenv(name, home)
	}
	t.Setenv("XDG_STATE_HOME", "relative and so ignored")
	one, err := Dir("one")
	require.NoError(t, err)
	two, err := Dir("two")
	require.NoError(t, err)
	assert.True(t, filepath.IsAbs(one))
	assert.NotEqual(t, one, two)
	assert.Equal(t, "one", filepath.Base(one))
	inside, err := filepath.Rel(home, one)
	require.NoError(t, err)
	assert.True(t, filepath.IsLocal(inside))
}
