//go:build unix

package llama

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAFailedStepEndsWithWhatItSaidLast(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	err := follow(t.Context(), os.Environ(), log, nil, "sh", "-c", `echo "[1/2] first"; i=0; while [ $i -lt 60 ]; do echo "line $i"; i=$((i+1)); done; echo "the cause" >&2; exit 3`)
	require.ErrorContains(t, err, "exit status 3")
	assert.ErrorContains(t, err, "the cause")
	assert.ErrorContains(t, err, "line 59")
	assert.NotContains(t, err.Error(), "line 9\n", "only the end")
	whole, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.Contains(t, string(whole), "[1/2] first\n")

	require.NoError(t, follow(t.Context(), os.Environ(), log, nil, "true"))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, follow(ended, os.Environ(), log, nil, "sleep", "60"), context.Canceled)
}

func TestTheCompilerDoesNotLearnWhereTheSourceLies(t *testing.T) {
	t.Setenv("CFLAGS", "-O1")
	t.Setenv("CXXFLAGS", "")
	env := Toolchain{}.environment("/src", "/out")
	assert.Contains(t, env, "CFLAGS=-O1 -ffile-prefix-map=/src=llama.cpp -ffile-prefix-map=/out=build")
	assert.Contains(t, env, "CXXFLAGS=-ffile-prefix-map=/src=llama.cpp -ffile-prefix-map=/out=build")
	assert.Contains(t, env, "GIT_DIR="+os.DevNull)
}
