//go:build !linux

package process

// expendable has nobody to tell: these systems take no word on it.
func expendable() {}
