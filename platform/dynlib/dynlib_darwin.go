package dynlib

// Suffix ends a library's file name.
const Suffix = ".dylib"

// whole: the loader of this system checks by itself.
func whole(string) error { return nil }
