package gguf

import (
	"fmt"
	"math/bits"
)

// Type is the format of a tensor's elements, numbered as enum ggml_type.
type Type uint32

// The types of the pinned ggml. The gaps are types that were removed.
const (
	F32     Type = 0
	F16     Type = 1
	Q4_0    Type = 2
	Q4_1    Type = 3
	Q5_0    Type = 6
	Q5_1    Type = 7
	Q8_0    Type = 8
	Q8_1    Type = 9
	Q2_K    Type = 10
	Q3_K    Type = 11
	Q4_K    Type = 12
	Q5_K    Type = 13
	Q6_K    Type = 14
	Q8_K    Type = 15
	IQ2_XXS Type = 16
	IQ2_XS  Type = 17
	IQ3_XXS Type = 18
	IQ1_S   Type = 19
	IQ4_NL  Type = 20
	IQ3_S   Type = 21
	IQ2_S   Type = 22
	IQ4_XS  Type = 23
	I8      Type = 24
	I16     Type = 25
	I32     Type = 26
	I64     Type = 27
	F64     Type = 28
	IQ1_M   Type = 29
	BF16    Type = 30
	TQ1_0   Type = 34
	TQ2_0   Type = 35
	MXFP4   Type = 39
	NVFP4   Type = 40
	Q1_0    Type = 41
	Q2_0    Type = 42
)

type layout struct {
	name  string
	block int64 // elements in a block
	bytes int64 // bytes of a block
}

// layouts repeats ggml_type_name, ggml_blck_size and ggml_type_size of the pinned ggml.
var layouts = [...]layout{
	F32:     {"f32", 1, 4},
	F16:     {"f16", 1, 2},
	Q4_0:    {"q4_0", 32, 18},
	Q4_1:    {"q4_1", 32, 20},
	Q5_0:    {"q5_0", 32, 22},
	Q5_1:    {"q5_1", 32, 24},
	Q8_0:    {"q8_0", 32, 34},
	Q8_1:    {"q8_1", 32, 36},
	Q2_K:    {"q2_K", 256, 84},
	Q3_K:    {"q3_K", 256, 110},
	Q4_K:    {"q4_K", 256, 144},
	Q5_K:    {"q5_K", 256, 176},
	Q6_K:    {"q6_K", 256, 210},
	Q8_K:    {"q8_K", 256, 292},
	IQ2_XXS: {"iq2_xxs", 256, 66},
	IQ2_XS:  {"iq2_xs", 256, 74},
	IQ3_XXS: {"iq3_xxs", 256, 98},
	IQ1_S:   {"iq1_s", 256, 50},
	IQ4_NL:  {"iq4_nl", 32, 18},
	IQ3_S:   {"iq3_s", 256, 110},
	IQ2_S:   {"iq2_s", 256, 82},
	IQ4_XS:  {"iq4_xs", 256, 136},
	I8:      {"i8", 1, 1},
	I16:     {"i16", 1, 2},
	I32:     {"i32", 1, 4},
	I64:     {"i64", 1, 8},
	F64:     {"f64", 1, 8},
	IQ1_M:   {"iq1_m", 256, 56},
	BF16:    {"bf16", 1, 2},
	TQ1_0:   {"tq1_0", 256, 54},
	TQ2_0:   {"tq2_0", 256, 66},
	MXFP4:   {"mxfp4", 32, 17},
	NVFP4:   {"nvfp4", 64, 36},
	Q1_0:    {"q1_0", 128, 18},
	Q2_0:    {"q2_0", 64, 18},
}

// Known reports whether the pinned ggml has the type.
func (t Type) Known() bool { return int(t) < len(layouts) && layouts[t].block > 0 }

// Block is the smallest unit of the type: how many elements it holds and how many bytes it takes. Both are 0 for an
// unknown type.
func (t Type) Block() (elements, bytes int64) {
	if !t.Known() {
		return 0, 0
	}
	return layouts[t].block, layouts[t].bytes
}

// Bytes is the size of n consecutive elements of a row, n being a multiple of the type's block. It is 0 for an unknown
// type.
func (t Type) Bytes(n int64) int64 {
	elements, bytes := t.Block()
	if elements == 0 {
		return 0
	}
	return n / elements * bytes
}

// maxTensor bounds a tensor's bytes, and with them its elements (at least a bit each), far above any file.
const maxTensor = 1 << 56

// Size is the bytes of a contiguous tensor of the given dimensions (elements, fastest first). An error says why there can
// be no such tensor: the type is unknown, a row is no whole number of blocks, or it is larger than any file.
func (t Type) Size(dims [4]int64) (int64, error) {
	block, bytes := t.Block()
	if block == 0 {
		return 0, fmt.Errorf("unknown or removed tensor type %d", uint32(t))
	}
	if dims[0]%block != 0 {
		return 0, fmt.Errorf("rows of %d elements, but %s holds them in blocks of %d", dims[0], t, block)
	}
	total := uint64(bytes)
	for i, d := range dims {
		if d < 0 {
			return 0, fmt.Errorf("a dimension of %d", d)
		}
		if i == 0 {
			d /= block
		}
		hi, lo := bits.Mul64(total, uint64(d))
		if hi != 0 || lo > maxTensor {
			return 0, fmt.Errorf("dimensions %v, more than a file can hold", dims)
		}
		total = lo
	}
	return int64(total), nil
}

// String is ggml's own name of the type.
func (t Type) String() string {
	if !t.Known() {
		return fmt.Sprintf("type %d", uint32(t))
	}
	return layouts[t].name
}

// ParseType finds a type by the name that String gives it.
func ParseType(name string) (Type, error) {
	for t, l := range layouts {
		if l.block > 0 && l.name == name {
			return Type(t), nil
		}
	}
	return 0, fmt.Errorf("no tensor type is called %q", name)
}

// MarshalText writes the type's name.
func (t Type) MarshalText() ([]byte, error) {
	if !t.Known() {
		return nil, fmt.Errorf("tensor %s is unknown", t)
	}
	return []byte(layouts[t].name), nil
}

// UnmarshalText reads a type's name.
func (t *Type) UnmarshalText(text []byte) error {
	parsed, err := ParseType(string(text))
	if err == nil {
		*t = parsed
	}
	return err
}
