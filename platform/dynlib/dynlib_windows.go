package dynlib

import "golang.org/x/sys/windows"

// Prefix begins a library's file name.
const Prefix = ""

// Suffix ends a library's file name.
const Suffix = ".dll"

// open looks for what the library needs beside it and in the system's own directory, nowhere else: not in the working
// directory and not on PATH.
func open(path string) (uintptr, error) {
	h, err := windows.LoadLibraryEx(path, 0, windows.LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR|windows.LOAD_LIBRARY_SEARCH_SYSTEM32)
	return uintptr(h), err
}

func symbol(h uintptr, name string) (uintptr, error) {
	return windows.GetProcAddress(windows.Handle(h), name)
}

// openModule: a DLL's symbols are its own on Windows.
func openModule(path string) (uintptr, error) { return open(path) }

func closeModule(h uintptr) error { return windows.FreeLibrary(windows.Handle(h)) }

func cSymbol(name string) (uintptr, error) {
	h, err := windows.LoadLibraryEx("msvcrt.dll", 0, windows.LOAD_LIBRARY_SEARCH_SYSTEM32)
	if err != nil {
		return 0, err
	}
	return symbol(uintptr(h), name)
}

// whole: the loader of this system checks by itself.
func whole(string) error { return nil }
