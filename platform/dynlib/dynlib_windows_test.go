package dynlib

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/windows"
)

func systemLibrary(t *testing.T) (path, processID string) {
	t.Helper()
	dir, err := windows.GetSystemDirectory()
	require.NoError(t, err)
	return filepath.Join(dir, "kernel32.dll"), "GetCurrentProcessId"
}
