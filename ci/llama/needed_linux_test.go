package llama

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/ci/tools"
)

// Two libraries as cmake makes them, one needing the other by a versioned name that no file has yet.
func TestEveryNeededNameIsThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "x.c", "int x(void) { return 1; }\n", 0o644)
	write(t, dir, "y.c", "int x(void); int y(void) { return x(); }\n", 0o644)
	bin := filepath.Join(dir, "bin")
	require.NoError(t, os.Mkdir(bin, 0o755))
	cc := func(args ...string) {
		cmd := exec.Command(tools.C.Path(), append([]string{"-shared", "-fPIC"}, args...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	cc("-Wl,-soname,libggml-base.so.0", "-o", "bin/libggml-base.so", "x.c")
	cc("-Wl,-soname,libggml.so.0", "-Wl,--no-as-needed", "-o", "bin/libggml.so", "y.c", "bin/libggml-base.so")

	require.NoError(t, LinkNeeded(bin))
	assert.True(t, same(filepath.Join(bin, "libggml-base.so"), filepath.Join(bin, "libggml-base.so.0")))
	require.NoFileExists(t, filepath.Join(bin, "libggml.so.0"), "nobody asks for it")

	write(t, bin, "libggml-broken.so", "no library", 0o755)
	require.ErrorContains(t, LinkNeeded(bin), "libggml-broken.so is no shared library")
}
