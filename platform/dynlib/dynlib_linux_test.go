package dynlib

import (
	"os"
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
