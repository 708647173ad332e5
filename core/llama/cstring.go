package llama

import "unsafe"

// CString is a C copy of s with its terminator. The caller keeps the slice alive as long as C may read it; Go memory does
// not move, so the address stays good.
func CString(s string) []byte { return append([]byte(s), 0) }

// Addr is the address of the first element, 0 for an empty slice. The caller keeps the slice alive while C uses it.
func Addr[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }
