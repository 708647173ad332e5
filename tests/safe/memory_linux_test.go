package safe

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A file system that has no direct reads, here one in memory, is read in the ordinary way, and the run says so.
func TestFileSystemWithoutDirectReads(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("/dev/shm", "bmoe-safe-")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	path := copied(t, model(t, moe)[0], filepath.Join(dir, "ram.gguf"), -1)
	args := []string{"-p", "Hello", "-n", "8", "-c", "64", "--ignore-eos", "--moe-stream", "--cache-mb", "5"}
	o := run(t, append([]string{"-m", path}, args...)...)
	o.orderly(t, done)
	assert.Contains(t, o.stderr, ", buffered reads,")
	assert.Contains(t, o.stderr, "\nnote     ram.gguf is read through the page cache: ")
	assert.Equal(t, run(t, append([]string{"-m", model(t, moe)[0]}, args...)...).stdout, o.stdout)
}
