// Package gguftest writes small GGUF files for tests: well-formed ones from their description, malformed ones piece by
// piece. It is no writer for real models: tensor data is zeros.
package gguftest

import (
	"encoding/binary"
	"fmt"
	"reflect"

	"github.com/bmoe/bmoe/core/gguf"
)

// Pair is a metadata key and its value: any integer but int and uint, a float, bool, string, or a slice of one of them.
type Pair struct {
	Key   string
	Value any
}

// KV is a Pair.
func KV(key string, value any) Pair { return Pair{Key: key, Value: value} }

// Tensor describes a tensor; Dims has one to four dimensions, fastest first.
type Tensor struct {
	Name string
	Type gguf.Type
	Dims []int64
}

// NewTensor is a Tensor.
func NewTensor(name string, typ gguf.Type, dims ...int64) Tensor {
	return Tensor{Name: name, Type: typ, Dims: dims}
}

// Size is the tensor's bytes.
func (t Tensor) Size() int64 {
	dims := [4]int64{1, 1, 1, 1}
	copy(dims[:], t.Dims)
	n, err := t.Type.Size(dims)
	if err != nil {
		panic(fmt.Sprintf("gguftest: %s: %v", t.Name, err))
	}
	return n
}

// Header is a file up to its data section, in which the tensors follow each other at multiples of 32.
func Header(meta []Pair, tensors []Tensor) []byte {
	var e Encoder
	e.Start(uint64(len(tensors)), uint64(len(meta)))
	for _, p := range meta {
		e.Pair(p.Key, p.Value)
	}
	var offset int64
	for _, t := range tensors {
		e.Tensor(t, uint64(offset))
		offset += (t.Size() + 31) &^ 31
	}
	for len(e.Bytes)%32 != 0 {
		e.Bytes = append(e.Bytes, 0)
	}
	return e.Bytes
}

// File is a whole file.
func File(meta []Pair, tensors []Tensor) []byte {
	b := Header(meta, tensors)
	for _, t := range tensors {
		b = append(b, make([]byte, (t.Size()+31)&^31)...)
	}
	return b
}

// Encoder appends pieces of a file, in whatever order a test wants.
type Encoder struct{ Bytes []byte }

// Start writes what a file begins with.
func (e *Encoder) Start(tensors, pairs uint64) {
	e.Bytes = append(e.Bytes, "GGUF"...)
	e.put(uint32(3), tensors, pairs)
}

// Pair writes a metadata pair.
func (e *Encoder) Pair(key string, v any) {
	e.Text(key)
	code, array := kind(v)
	if array {
		e.put(uint32(9), code, uint64(reflect.ValueOf(v).Len()))
	} else {
		e.put(code)
	}
	switch v := v.(type) {
	case string:
		e.Text(v)
	case []string:
		for _, s := range v {
			e.Text(s)
		}
	default:
		e.put(v)
	}
}

// Tensor writes an entry of the tensor table. offset counts from the data section.
func (e *Encoder) Tensor(t Tensor, offset uint64) {
	e.Text(t.Name)
	e.put(uint32(len(t.Dims)), t.Dims, uint32(t.Type), offset)
}

// Text writes a string behind its length.
func (e *Encoder) Text(s string) {
	e.put(uint64(len(s)))
	e.Bytes = append(e.Bytes, s...)
}

// put writes fixed-size values, or slices of them.
func (e *Encoder) put(values ...any) {
	for _, v := range values {
		b, err := binary.Append(e.Bytes, binary.LittleEndian, v)
		if err != nil {
			panic(fmt.Sprintf("gguftest: %v", err))
		}
		e.Bytes = b
	}
}

// kind is a value's number in enum gguf_type; of an array, its elements'.
func kind(v any) (code uint32, array bool) {
	switch v.(type) {
	case uint8:
		return 0, false
	case int8:
		return 1, false
	case uint16:
		return 2, false
	case int16:
		return 3, false
	case uint32:
		return 4, false
	case int32:
		return 5, false
	case float32:
		return 6, false
	case bool:
		return 7, false
	case string:
		return 8, false
	case uint64:
		return 10, false
	case int64:
		return 11, false
	case float64:
		return 12, false
	}
	list := reflect.ValueOf(v)
	if list.Kind() != reflect.Slice {
		panic(fmt.Sprintf("gguftest: no metadata can be a %T", v))
	}
	code, _ = kind(reflect.Zero(list.Type().Elem()).Interface())
	return code, true
}
