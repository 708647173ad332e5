// Package manifest knows what a release's folder was made of: each of its files by hash, the llama.cpp behind them, and what
// was left out and why. The release writes it beside the program, and the program reads it back and checks itself.
//
// It must not know how any of the files is built, nor load one.
package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Name is the manifest's file in the folder.
const Name = "manifest.json"

// Manifest is what a release says of itself.
type Manifest struct {
	Version  string    `json:"version"` // of bmoe
	System   string    `json:"system"`  // what it is for, in Go's names: linux/amd64
	Llama    Llama     `json:"llama.cpp"`
	Compiler Compiler  `json:"compiler"`
	Modules  []Module  `json:"modules"`
	LeftOut  []LeftOut `json:"left_out"`
	Files    []File    `json:"files"` // sorted by name
}

// Llama is the llama.cpp that the libraries were built from.
type Llama struct {
	Release string `json:"release"`
	Tree    string `json:"tree"` // git's id of the source's whole content
}

// Compiler is what built the libraries.
type Compiler struct {
	C       string `json:"c"`
	CXX     string `json:"cxx"`
	Machine string `json:"machine"` // that it compiles for
	Flags   string `json:"flags"`   // CFLAGS, CXXFLAGS and LDFLAGS of the person who built it
}

// Module is a set of libraries that was built at once, with the options that cmake was given for it.
type Module struct {
	Name    string   `json:"name"`
	Options []string `json:"options"`
}

// LeftOut is a module that this release could have had.
type LeftOut struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// File is one file of the folder.
type File struct {
	Name   string `json:"name"` // relative to the folder, with slashes
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

// Of lists the files in dir and below it, the manifest itself left out. A link counts as what it leads to, so that a folder
// copied to where there are none is still the same.
func Of(dir string) ([]File, error) {
	var files []File
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if rel == Name {
			return nil
		}
		size, sum, err := hash(path)
		files = append(files, File{filepath.ToSlash(rel), size, sum})
		return err
	})
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, err
}

func hash(path string) (size int64, sum string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	h := sha256.New()
	size, err = io.Copy(h, f)
	return size, hex.EncodeToString(h.Sum(nil)), err
}

// Write puts the manifest into dir.
func (m Manifest) Write(dir string) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, Name), append(data, '\n'), 0o644)
}

// Read is the manifest in dir. The error is fs.ErrNotExist where there is none: the folder is no release's.
func Read(dir string) (Manifest, error) {
	path := filepath.Join(dir, Name)
	data, err := os.ReadFile(path)
	if err != nil {
		return Manifest{}, err
	}
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return Manifest{}, fmt.Errorf("%s: %w; unpack the archive again", path, err)
	}
	for _, f := range m.Files {
		if !fs.ValidPath(f.Name) {
			return Manifest{}, fmt.Errorf("%s: %q names no file in this folder; unpack the archive again", path, f.Name)
		}
	}
	return m, nil
}

// Found is what became of a release's files, by name.
type Found struct {
	Changed []string // and those that cannot be read, with the reason
	Missing []string
	Extra   []string // not of the release: a module that someone dropped in, say
}

// Whole says that every file of the release is there as it was made.
func (f Found) Whole() bool { return len(f.Changed)+len(f.Missing) == 0 }

// Check compares the folder with the manifest.
func (m Manifest) Check(dir string) (Found, error) {
	var found Found
	known := map[string]bool{Name: true}
	for _, want := range m.Files {
		known[want.Name] = true
		size, sum, err := hash(filepath.Join(dir, filepath.FromSlash(want.Name)))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			found.Missing = append(found.Missing, want.Name)
		case err != nil:
			found.Changed = append(found.Changed, fmt.Sprintf("%s (%v)", want.Name, err))
		case size != want.Size || sum != want.SHA256:
			found.Changed = append(found.Changed, want.Name)
		}
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if name := filepath.ToSlash(rel); err == nil && !known[name] {
			found.Extra = append(found.Extra, name)
		}
		return err
	})
	return found, err
}
