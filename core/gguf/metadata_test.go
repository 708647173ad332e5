package gguf_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/gguf"
	"github.com/bmoe/bmoe/core/gguf/gguftest"
)

var pairs = []gguftest.Pair{
	gguftest.KV("u8", uint8(200)), gguftest.KV("i8", int8(-3)), gguftest.KV("u16", uint16(60000)), gguftest.KV("i16", int16(-300)),
	gguftest.KV("u32", uint32(4e9)), gguftest.KV("i32", int32(-7)), gguftest.KV("u64", uint64(math.MaxUint64)), gguftest.KV("i64", int64(math.MinInt64)),
	gguftest.KV("f32", float32(0.5)), gguftest.KV("f64", 0.25), gguftest.KV("yes", true), gguftest.KV("no", false), gguftest.KV("text", "grüezi"), gguftest.KV("void", ""),
	gguftest.KV("texts", []string{"", "x", "yy"}), gguftest.KV("u8s", []uint8{1, 255}), gguftest.KV("i32s", []int32{-1, 2}), gguftest.KV("u64s", []uint64{1, math.MaxUint64}),
	gguftest.KV("f32s", []float32{1, 2}), gguftest.KV("bools", []bool{true, false}), gguftest.KV("none", []uint32{}),
}

func open(t *testing.T) gguf.Metadata {
	t.Helper()
	f, err := gguf.Open(write(t, "m.gguf", gguftest.File(pairs, nil)))
	require.NoError(t, err)
	return f.Meta
}

// is asserts that an accessor answered want, or false where want is nil.
func is[T any](t *testing.T, key string, want any, got T, ok bool) {
	t.Helper()
	assert.Equal(t, want != nil, ok, key)
	if want != nil {
		assert.Equal(t, want, got, key)
	}
}

func TestScalars(t *testing.T) {
	t.Parallel()
	m := open(t)
	for key, want := range map[string]struct{ i, u, f, b, s any }{
		"u8":     {i: int64(200), u: uint64(200)},
		"i8":     {i: int64(-3)},
		"u16":    {i: int64(60000), u: uint64(60000)},
		"i16":    {i: int64(-300)},
		"u32":    {i: int64(4e9), u: uint64(4e9)},
		"i32":    {i: int64(-7)},
		"u64":    {u: uint64(math.MaxUint64)},
		"i64":    {i: int64(math.MinInt64)},
		"f32":    {f: 0.5},
		"f64":    {f: 0.25},
		"yes":    {b: true},
		"no":     {b: false},
		"text":   {s: "grüezi"},
		"void":   {s: ""},
		"texts":  {},
		"u8s":    {},
		"absent": {},
	} {
		i, ok := m.Int(key)
		is(t, key, want.i, i, ok)
		u, ok := m.Uint(key)
		is(t, key, want.u, u, ok)
		f, ok := m.Float(key)
		is(t, key, want.f, f, ok)
		b, ok := m.Bool(key)
		is(t, key, want.b, b, ok)
		s, ok := m.String(key)
		is(t, key, want.s, s, ok)
	}
}

func TestArrays(t *testing.T) {
	t.Parallel()
	m := open(t)
	for key, want := range map[string]struct{ ints, texts any }{
		"texts":  {texts: []string{"", "x", "yy"}},
		"u8s":    {ints: []int64{1, 255}},
		"i32s":   {ints: []int64{-1, 2}},
		"u64s":   {},
		"f32s":   {},
		"bools":  {},
		"none":   {ints: []int64{}},
		"u8":     {},
		"text":   {},
		"absent": {},
	} {
		ints, ok := m.Ints(key)
		is(t, key, want.ints, ints, ok)
		texts, ok := m.Strings(key)
		is(t, key, want.texts, texts, ok)
	}
	assert.True(t, m.Array("none"))
	assert.False(t, m.Array("u8"))
	assert.False(t, m.Array("absent"))
	for key, want := range map[string]int64{"texts": 3, "none": 0, "text": 1} {
		n, ok := m.Len(key)
		is(t, key, want, n, ok)
	}
	_, ok := m.Len("absent")
	assert.False(t, ok)
}

func TestKeys(t *testing.T) {
	t.Parallel()
	m := open(t)
	var want []string
	for _, p := range pairs {
		want = append(want, p.Key)
	}
	assert.ElementsMatch(t, want, slices.Collect(m.Keys()))
	for range m.Keys() {
		break // stopping early is allowed
	}
}
