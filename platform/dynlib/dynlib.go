// Package dynlib answers: how is a shared library of this system named, opened and asked for a symbol?
//
// A library is opened by absolute path only, so nothing is found through a search path. It must not know which libraries
// there are.
package dynlib

import (
	"fmt"
	"path/filepath"
)

// Name is the file name of a library on this system: "llama" is libllama.so, libllama.dylib or llama.dll.
func Name(lib string) string { return Prefix + lib + Suffix }

// Open loads the library at an absolute path and resolves all that it needs; its symbols serve the libraries opened
// after it. Opening it again gives the same handle. A library is never unloaded: its threads may be running.
func Open(path string) (uintptr, error) {
	if !filepath.IsAbs(path) {
		return 0, fmt.Errorf("open the library %s: not an absolute path", path)
	}
	if err := Whole(path); err != nil {
		return 0, err
	}
	h, err := open(path)
	if err != nil {
		return 0, fmt.Errorf("open the library %s: %w", path, err)
	}
	return h, nil
}

// Symbol is the address of a function or variable that the library at h exports.
func Symbol(h uintptr, name string) (uintptr, error) {
	if h == 0 {
		return 0, fmt.Errorf("find %s: no library is open", name)
	}
	p, err := symbol(h, name)
	if err != nil {
		return 0, fmt.Errorf("find %s in its library: %w", name, err)
	}
	return p, nil
}

// OpenModule loads a library like Open but keeps its symbols to itself: modules that export the same names can be open
// side by side. CloseModule undoes it, for a module in which nothing but plain functions was called.
func OpenModule(path string) (uintptr, error) {
	if !filepath.IsAbs(path) {
		return 0, fmt.Errorf("open the module %s: not an absolute path", path)
	}
	if err := Whole(path); err != nil {
		return 0, err
	}
	h, err := openModule(path)
	if err != nil {
		return 0, fmt.Errorf("open the module %s: %w", path, err)
	}
	return h, nil
}

// Whole tells whether the file at path is a library all of which is there. A system may end the process when it loads half
// of one. Where the system itself refuses such a file, this says nothing.
func Whole(path string) error {
	if err := whole(path); err != nil {
		return fmt.Errorf("%s is no whole library: %w", path, err)
	}
	return nil
}

// CloseModule gives back what OpenModule took.
func CloseModule(h uintptr) error { return closeModule(h) }

// CSymbol is the address of a function of the C library that this process runs on.
func CSymbol(name string) (uintptr, error) {
	p, err := cSymbol(name)
	if err != nil {
		return 0, fmt.Errorf("find %s in the C library: %w", name, err)
	}
	return p, nil
}
