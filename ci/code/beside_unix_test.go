//go:build unix

package code

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What Native relies on: a program run by beside finds its own folder to be the one named.
func TestBesideRunsAProgramInAnotherFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := filepath.Join(dir, "a folder")
	require.NoError(t, os.Mkdir(folder, 0o755))
	beside := filepath.Join(dir, "beside")
	require.NoError(t, Repo{Root: filepath.Join("..", "..")}.run(t.Context(), pure, "build", "-o", beside, "./ci/beside"))
	program := filepath.Join(dir, "say.test")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho \"$(dirname \"$0\")|$1\"\nexit 7\n"), 0o755))

	for range 2 { // the second replaces what the first left
		var out bytes.Buffer
		cmd := exec.Command(beside, folder, program, "an argument")
		cmd.Stdout = &out
		var exit *exec.ExitError
		require.ErrorAs(t, cmd.Run(), &exit)
		assert.Equal(t, 7, exit.ExitCode(), "the program's own")
		assert.Equal(t, folder+"|an argument\n", out.String())
	}
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, left, 1)
	sweep(folder)
	require.NoFileExists(t, filepath.Join(folder, left[0].Name()))
}
