//go:build !ios

package memory

// share is the limit of an app on iOS, which macOS gives to none.
func share() (int64, bool) { return 0, false }
