// Package packed reads the archives that a release is made of.
//
// It must not know what ought to be in one.
package packed

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Archive is an archive's content under its one top folder.
type Archive struct {
	Folder string
	Files  []File
}

// File is a file of an archive.
type File struct {
	Name string // below the top folder
	Mode fs.FileMode
	Data []byte
}

// Open reads a .tar.gz or .zip whole. The error says so if there is more than one top folder, or a name that leads out of it.
func Open(name string) (Archive, error) {
	f, err := os.Open(name)
	if err != nil {
		return Archive{}, err
	}
	defer f.Close()
	var a Archive
	switch {
	case strings.HasSuffix(name, ".zip"):
		err = a.zip(f)
	case strings.HasSuffix(name, ".tar.gz"):
		err = a.tar(f)
	default:
		err = errors.New("neither a .tar.gz nor a .zip")
	}
	if err != nil {
		return Archive{}, fmt.Errorf("%s: %w", name, err)
	}
	return a, nil
}

func (a *Archive) tar(f io.Reader) error {
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeDir:
		case tar.TypeReg:
			if err := a.add(h.Name, h.FileInfo().Mode(), r); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%s is neither a file nor a folder", h.Name)
		}
	}
}

func (a *Archive) zip(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	z, err := zip.NewReader(f, info.Size())
	if err != nil {
		return err
	}
	for _, e := range z.File {
		if e.FileInfo().IsDir() {
			continue
		}
		r, err := e.Open()
		if err != nil {
			return err
		}
		if err := errors.Join(a.add(e.Name, e.Mode(), r), r.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (a *Archive) add(name string, mode fs.FileMode, r io.Reader) error {
	top, below, ok := strings.Cut(path.Clean(name), "/")
	if !ok || !fs.ValidPath(path.Clean(name)) {
		return fmt.Errorf("%s is not below a top folder", name)
	}
	if a.Folder == "" {
		a.Folder = top
	}
	if a.Folder != top {
		return fmt.Errorf("two top folders, %s and %s", a.Folder, top)
	}
	data, err := io.ReadAll(r)
	a.Files = append(a.Files, File{below, mode, data})
	return err
}

// File finds one by its name.
func (a Archive) File(name string) (File, bool) {
	for _, f := range a.Files {
		if f.Name == name {
			return f, true
		}
	}
	return File{}, false
}
