//go:build linux || darwin

package dynlib

import "github.com/ebitengine/purego"

// Prefix begins a library's file name.
const Prefix = "lib"

func open(path string) (uintptr, error) {
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
}

func symbol(h uintptr, name string) (uintptr, error) { return purego.Dlsym(h, name) }

func openModule(path string) (uintptr, error) {
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func closeModule(h uintptr) error { return purego.Dlclose(h) }

func cSymbol(name string) (uintptr, error) { return purego.Dlsym(purego.RTLD_DEFAULT, name) }
