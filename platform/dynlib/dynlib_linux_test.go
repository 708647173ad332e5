package dynlib

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// systemLibrary is the C library that this process has open.
func systemLibrary(t *testing.T) (path, processID string) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line)
		if path := fields[len(fields)-1]; strings.Contains(path, "/libc.so") || strings.Contains(path, "/ld-musl") {
			return path, "getpid"
		}
	}
	t.Fatal("no C library is mapped")
	return "", ""
}

// The dynamic loader would end the process with a bus error.
func TestALibraryThatEndsEarlyIsRefused(t *testing.T) {
	t.Parallel()
	path, _ := systemLibrary(t)
	all, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, Whole(path))
	cut := filepath.Join(t.TempDir(), Name("cut"))
	for _, n := range []int{0, 63, 64, 4096, len(all) / 2, len(all) * 9 / 10, len(all) - 1} {
		require.NoError(t, os.WriteFile(cut, all[:n], 0o700))
		for name, f := range map[string]func(string) (uintptr, error){"Open": Open, "OpenModule": OpenModule} {
			_, err := f(cut)
			require.ErrorContains(t, err, cut+" is no whole library: ", "%s of %d bytes", name, n)
		}
	}
}
