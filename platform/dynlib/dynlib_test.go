package dynlib

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// systemLibrary is the path of a library that every system has, and processID its function that returns this process's id.
func TestContract(t *testing.T) {
	t.Parallel()
	path, processID := systemLibrary(t)
	h, err := Open(path)
	require.NoError(t, err)
	again, err := Open(path)
	require.NoError(t, err)
	assert.Equal(t, h, again)

	f, err := Symbol(h, processID)
	require.NoError(t, err)
	id, _, _ := purego.SyscallN(f)
	assert.EqualValues(t, os.Getpid(), id)

	_, err = Symbol(h, "no_such_function")
	require.ErrorContains(t, err, "no_such_function")
	_, err = Symbol(0, processID)
	require.Error(t, err)
}

func TestWhatCannotBeOpened(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, Name("text"))
	require.NoError(t, os.WriteFile(text, []byte("not a library"), 0o700))
	for _, path := range []string{text, filepath.Join(dir, Name("missing"))} {
		_, err := Open(path)
		require.ErrorContains(t, err, path)
	}
	path, _ := systemLibrary(t)
	for _, relative := range []string{filepath.Base(path), Name("c"), ""} {
		_, err := Open(relative)
		require.ErrorContains(t, err, "absolute path", "nothing is searched for")
	}
}

func TestName(t *testing.T) {
	t.Parallel()
	assert.Equal(t, Prefix+"ggml-cpu"+Suffix, Name("ggml-cpu"))
	assert.Contains(t, []string{"libllama.so", "libllama.dylib", "llama.dll"}, Name("llama"))
}
