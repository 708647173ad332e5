package memory

import "github.com/bmoe/bmoe/platform/internal/mach"

// share is what this process may still take before the system ends it for that; false where there is no such limit.
func share() (int64, bool) {
	n := mach.Available()
	return n, n > 0
}
