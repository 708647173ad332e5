package gguf

import "io"

// ParseHeader is parseHeader for fuzzing: it returns the metadata and the tensors, whose offsets count from dataStart.
func ParseHeader(r io.Reader, size int64) (meta Metadata, tensors []Tensor, dataStart int64, err error) {
	h, err := parseHeader(r, size)
	if err != nil {
		return Metadata{}, nil, 0, err
	}
	return Metadata{h.meta}, h.tensors, h.dataStart, nil
}
