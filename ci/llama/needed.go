package llama

import (
	"bytes"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// LinkNeeded gives every library in bin the second name under which the others ask the loader for it, such as
// libggml-base.so.0 for libggml-base.so: a hard link, or a copy where there are none, since archives and some systems drop
// symbolic links.
func LinkNeeded(bin string) error {
	files, err := os.ReadDir(bin)
	if err != nil {
		return err
	}
	for _, f := range files {
		needed, err := imports(filepath.Join(bin, f.Name()))
		if err != nil {
			return err
		}
		for _, name := range needed {
			name = path.Base(name) // a Mach-O name starts with @rpath/
			if !strings.HasPrefix(name, "libggml") && !strings.HasPrefix(name, "libllama") {
				continue
			}
			target := filepath.Join(bin, name)
			if _, err := os.Stat(target); err == nil {
				continue
			}
			from := filepath.Join(bin, unversioned(name))
			if err := os.Link(from, target); err != nil {
				if err := copyFile(from, target); err != nil {
					return fmt.Errorf("%s needs %s: %w", f.Name(), name, err)
				}
			}
		}
	}
	return nil
}

// unversioned is the plain name of libx.so.0 or libx.0.dylib.
func unversioned(name string) string {
	if base, _, ok := strings.Cut(name, ".so."); ok {
		return base + ".so"
	}
	if base, ok := strings.CutSuffix(name, ".dylib"); ok {
		base, _, _ = strings.Cut(base, ".")
		return base + ".dylib"
	}
	return name
}

// imports lists the libraries that a shared library asks the loader for.
func imports(file string) ([]string, error) {
	type binary interface {
		ImportedLibraries() ([]string, error)
		Close() error
	}
	var failed []error
	for _, open := range []func() (binary, error){
		func() (binary, error) { return elf.Open(file) },
		func() (binary, error) { return macho.Open(file) },
		func() (binary, error) { return pe.Open(file) },
	} {
		b, err := open()
		if err != nil {
			failed = append(failed, err)
			continue
		}
		defer b.Close()
		return b.ImportedLibraries()
	}
	return nil, fmt.Errorf("%s is no shared library: %w", file, errors.Join(failed...))
}

// same says whether both files exist and hold the same bytes.
func same(a, b string) bool {
	x, err := os.ReadFile(a)
	if err != nil {
		return false
	}
	y, err := os.ReadFile(b)
	return err == nil && bytes.Equal(x, y)
}
