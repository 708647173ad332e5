// Package gguf reads what a GGUF model file says about itself: its metadata and its tensor table, shards included. It
// reads no tensor data and decides nothing about it; what a model's tensors mean is core/model's subject.
//
// The reader is our own, for three reasons. Reads of experts need each tensor's absolute offset in its shard. A model file
// comes from anywhere, so every count in it is checked against the file and against hard bounds before anything is
// allocated. And it accepts exactly the layouts and tensor types that the pinned llama.cpp loads, so that a file that
// passes here does not fail later inside a library that ends the process.
package gguf

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// File is a model: its shards, what the first says about it, and the tensors of all.
type File struct {
	Shards  []Shard
	Meta    Metadata
	Tensors []Tensor // in file order, shard by shard

	byName map[string]int
}

// Shard is one of the files a model is in. A model in one file has one.
type Shard struct {
	Path      string
	Size      int64 // bytes
	DataStart int64 // where tensor data begins, in bytes from the start of the file
}

// Tensor is where a tensor lies and what it looks like.
type Tensor struct {
	Name   string
	Type   Type
	Dims   [4]int64 // elements per dimension, fastest first; 1 where there is none
	Size   int64    // bytes
	Shard  int      // index into File.Shards
	Offset int64    // bytes from the start of the shard
}

// Tensor finds a tensor by name.
func (f *File) Tensor(name string) (Tensor, bool) {
	i, ok := f.byName[name]
	if !ok {
		return Tensor{}, false
	}
	return f.Tensors[i], true
}

// Open reads a model. path names its file, or the first of its shards. Every tensor's data is within its shard.
//
// An error names the file and what is wrong with it, in words for the person who named it.
func Open(path string) (*File, error) {
	f, err := OpenHeader(path)
	if err != nil {
		return nil, err
	}
	for _, t := range f.Tensors {
		shard := f.Shards[t.Shard]
		if t.Offset > shard.Size || t.Size > shard.Size-t.Offset {
			return nil, fmt.Errorf("%s: tensor %q should end at byte %d, but the file has %d bytes: it was cut short or is still being downloaded",
				shard.Path, t.Name, t.Offset+t.Size, shard.Size)
		}
	}
	return f, nil
}

// OpenHeader is Open for files that may hold only their headers: it does not ask that tensor data be there.
func OpenHeader(path string) (*File, error) {
	first, shard, err := readShard(path)
	if err != nil {
		return nil, err
	}
	f := &File{Meta: Metadata{first.meta}, byName: make(map[string]int)}
	if err := f.add(shard, first.tensors); err != nil {
		return nil, err
	}
	count, ok := f.Meta.Uint("split.count")
	if !ok || count < 2 {
		return f, nil
	}
	prefix, err := splitPrefix(path, f.Meta, count)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for n := range count {
		if n == 0 {
			continue
		}
		next, shard, err := readShard(splitPath(prefix, n, count))
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%s: shard %d of the model's %d is missing; put it beside the others", shard.Path, n+1, count)
		}
		if err != nil {
			return nil, err
		}
		if no, ok := (Metadata{next.meta}).Uint("split.no"); !ok || no != n {
			return nil, fmt.Errorf("%s: its metadata does not say that it is shard %d; it belongs to another model or was renamed", shard.Path, n+1)
		}
		if err := f.add(shard, next.tensors); err != nil {
			return nil, err
		}
	}
	want, ok := f.Meta.Uint("split.tensors.count")
	switch {
	case !ok:
		return nil, fmt.Errorf("%s: the first of %d shards does not say how many tensors they have", path, count)
	case want != uint64(len(f.Tensors)):
		return nil, fmt.Errorf("%s: the model should have %d tensors, but its %d shards have %d: they are not of one set", path, want, count, len(f.Tensors))
	}
	return f, nil
}

// add appends a shard and its tensors.
func (f *File) add(shard Shard, tensors []Tensor) error {
	for _, t := range tensors {
		if _, twice := f.byName[t.Name]; twice {
			return fmt.Errorf("%s: tensor %q is already in another shard", shard.Path, t.Name)
		}
		t.Shard = len(f.Shards)
		t.Offset += shard.DataStart
		f.byName[t.Name] = len(f.Tensors)
		f.Tensors = append(f.Tensors, t)
	}
	if len(f.Tensors) > maxTensors {
		return fmt.Errorf("%s: the shards up to this one have %d tensors; at most %d are accepted", shard.Path, len(f.Tensors), maxTensors)
	}
	f.Shards = append(f.Shards, shard)
	return nil
}

// readShard reads the header of one file. The shard's path is set even with an error.
func readShard(path string) (*header, Shard, error) {
	shard := Shard{Path: path}
	// Asked before opening: opening a pipe would wait for a writer.
	info, err := os.Stat(path)
	if err != nil {
		return nil, shard, fmt.Errorf("%s: %w", path, reason(err))
	}
	if !info.Mode().IsRegular() {
		what := "not a regular file"
		if info.IsDir() {
			what = "a directory, not a model file"
		}
		return nil, shard, fmt.Errorf("%s: %s", path, what)
	}
	shard.Size = info.Size()
	file, err := os.Open(path)
	if err != nil {
		return nil, shard, fmt.Errorf("%s: %w", path, reason(err))
	}
	defer file.Close()
	h, err := parseHeader(file, shard.Size)
	if err != nil {
		return nil, shard, fmt.Errorf("%s: %w", path, reason(err))
	}
	shard.DataStart = h.dataStart
	return h, shard, nil
}

// reason is an error without the path that os puts into it; ours already names the file.
func reason(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// splitPrefix is the part of a first shard's path that all shards share. llama.cpp finds the others by it.
func splitPrefix(path string, meta Metadata, count uint64) (string, error) {
	no, ok := meta.Uint("split.no")
	if !ok {
		return "", fmt.Errorf("one of %d shards, but its metadata does not say which", count)
	}
	prefix, named := strings.CutSuffix(path, splitPath("", no, count))
	switch {
	case !named:
		return "", fmt.Errorf("shard %d of %d, whose name must end in %q for the others to be found", no+1, count, splitPath("", no, count))
	case no != 0:
		return "", fmt.Errorf("shard %d of %d; name the first one, %s", no+1, count, splitPath(prefix, 0, count))
	}
	return prefix, nil
}

// splitPath is llama.cpp's name for shard no, counted from 0.
func splitPath(prefix string, no, count uint64) string {
	return fmt.Sprintf("%s-%05d-of-%05d.gguf", prefix, no+1, count)
}
