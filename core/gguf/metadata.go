package gguf

import (
	"encoding/binary"
	"iter"
	"math"
)

// kind is the type of a metadata value, numbered as enum gguf_type.
type kind uint32

const (
	kindUint8 kind = iota
	kindInt8
	kindUint16
	kindInt16
	kindUint32
	kindInt32
	kindFloat32
	kindBool
	kindString
	kindArray
	kindUint64
	kindInt64
	kindFloat64
	kindCount
)

// size is the bytes that one value takes in the file; 0 where they vary.
func (k kind) size() int64 {
	switch k {
	case kindUint8, kindInt8, kindBool:
		return 1
	case kindUint16, kindInt16:
		return 2
	case kindUint32, kindInt32, kindFloat32:
		return 4
	case kindUint64, kindInt64, kindFloat64:
		return 8
	}
	return 0
}

// value is one metadata value as it lies in the file. It is decoded when asked for: the vocabulary alone is hundreds of
// thousands of strings that most runs never look at.
type value struct {
	kind  kind // of the value, or of an array's elements
	array bool
	n     int64  // elements; 1 for a scalar
	raw   []byte // strings keep their length prefix
}

// Metadata is what a file says about its model: values by key, those of the first shard.
//
// The accessors answer false for a key that is absent or whose value is of another sort. Integers and floats of every
// width are read alike.
type Metadata struct{ values map[string]value }

// Len is the number of elements of an array, or 1 for a scalar.
func (m Metadata) Len(key string) (int64, bool) {
	v, ok := m.values[key]
	return v.n, ok
}

// Array reports whether the value is an array.
func (m Metadata) Array(key string) bool { return m.values[key].array }

// Int is an integer that fits int64.
func (m Metadata) Int(key string) (int64, bool) {
	v, ok := m.scalar(key)
	if !ok {
		return 0, false
	}
	return v.integer(0)
}

// Uint is an integer that is not negative.
func (m Metadata) Uint(key string) (uint64, bool) {
	v, ok := m.scalar(key)
	if ok && v.kind == kindUint64 {
		return binary.LittleEndian.Uint64(v.raw), true
	}
	n, ok := m.Int(key)
	return uint64(max(n, 0)), ok && n >= 0
}

// Float is a floating point number; an integer is not.
func (m Metadata) Float(key string) (float64, bool) {
	v, ok := m.scalar(key)
	switch {
	case ok && v.kind == kindFloat32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(v.raw))), true
	case ok && v.kind == kindFloat64:
		return math.Float64frombits(binary.LittleEndian.Uint64(v.raw)), true
	}
	return 0, false
}

// Bool is a truth value.
func (m Metadata) Bool(key string) (v, ok bool) {
	s, ok := m.scalar(key)
	if !ok || s.kind != kindBool {
		return false, false
	}
	return s.raw[0] != 0, true
}

// String is a text.
func (m Metadata) String(key string) (string, bool) {
	v, ok := m.scalar(key)
	if !ok || v.kind != kindString {
		return "", false
	}
	return string(v.raw[8:]), true
}

// Strings is an array of texts.
func (m Metadata) Strings(key string) ([]string, bool) {
	v, ok := m.values[key]
	if !ok || !v.array || v.kind != kindString {
		return nil, false
	}
	texts := make([]string, 0, v.n)
	for rest := v.raw; len(rest) > 0; {
		end := 8 + binary.LittleEndian.Uint64(rest)
		texts = append(texts, string(rest[8:end]))
		rest = rest[end:]
	}
	return texts, true
}

// Ints is an array of integers, each of which fits int64.
func (m Metadata) Ints(key string) ([]int64, bool) {
	v, ok := m.values[key]
	if !ok || !v.array {
		return nil, false
	}
	numbers := make([]int64, v.n)
	for i := range numbers {
		if numbers[i], ok = v.integer(int64(i)); !ok {
			return nil, false
		}
	}
	return numbers, true
}

// Keys yields every key once, in no order.
func (m Metadata) Keys() iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range m.values {
			if !yield(key) {
				return
			}
		}
	}
}

func (m Metadata) scalar(key string) (value, bool) {
	v, ok := m.values[key]
	return v, ok && !v.array
}

// integer is element i, where the elements are integers and this one fits int64.
func (v value) integer(i int64) (int64, bool) {
	at := v.raw[min(i*v.kind.size(), int64(len(v.raw))):]
	switch v.kind {
	case kindUint8:
		return int64(at[0]), true
	case kindInt8:
		return int64(int8(at[0])), true
	case kindUint16:
		return int64(binary.LittleEndian.Uint16(at)), true
	case kindInt16:
		return int64(int16(binary.LittleEndian.Uint16(at))), true
	case kindUint32:
		return int64(binary.LittleEndian.Uint32(at)), true
	case kindInt32:
		return int64(int32(binary.LittleEndian.Uint32(at))), true
	case kindInt64:
		return int64(binary.LittleEndian.Uint64(at)), true
	case kindUint64:
		n := binary.LittleEndian.Uint64(at)
		return int64(n), n <= math.MaxInt64
	}
	return 0, false
}
