package storage

import (
	"errors"
	"os"
)

// Mapping is a whole file mapped for reading, which is alive until Close.
type Mapping struct {
	path string
	view view
}

// Map maps a file. Nothing of it is read.
func Map(path string) (*Mapping, error) {
	f, err := Open(path, false)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // a mapping outlives it
	if f.size == 0 {
		return nil, &os.PathError{Op: "map", Path: path, Err: errors.New("the file is empty")}
	}
	view, err := f.handle.mapAll(f.size)
	if err != nil {
		return nil, &os.PathError{Op: "map", Path: path, Err: err}
	}
	return &Mapping{path, view}, nil
}

// Close ends the mapping.
func (m *Mapping) Close() error {
	if err := m.view.unmap(); err != nil {
		return &os.PathError{Op: "unmap", Path: m.path, Err: err}
	}
	return nil
}
