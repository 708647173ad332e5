package dynlib

import "testing"

func systemLibrary(*testing.T) (path, processID string) {
	return "/usr/lib/libSystem.B.dylib", "getpid"
}
