package gguf_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/gguf"
	"github.com/bmoe/bmoe/core/gguf/gguftest"
)

// Whatever the bytes, a header is refused or consistent.
func FuzzHeader(f *testing.F) {
	f.Add(gguftest.Header(meta, tensors))
	f.Add(gguftest.File(pairs, nil))
	f.Add(gguftest.Header(append(pairs, gguftest.KV("general.alignment", uint32(64))), tensors[:1]))
	f.Add([]byte("GGUF"))
	f.Fuzz(func(t *testing.T, content []byte) {
		m, tensors, start, err := gguf.ParseHeader(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			return
		}
		var end int64
		seen := make(map[string]bool)
		for _, tensor := range tensors {
			require.False(t, seen[tensor.Name])
			seen[tensor.Name] = true
			require.GreaterOrEqual(t, tensor.Offset, end)
			require.GreaterOrEqual(t, tensor.Size, int64(0))
			end = tensor.Offset + tensor.Size
		}
		require.GreaterOrEqual(t, start+end, start)
		for key := range m.Keys() {
			n, ok := m.Len(key)
			require.True(t, ok)
			if texts, ok := m.Strings(key); ok {
				require.Len(t, texts, int(n))
			}
			if numbers, ok := m.Ints(key); ok {
				require.Len(t, numbers, int(n))
			}
			m.Int(key)
			m.Uint(key)
			m.Float(key)
			m.Bool(key)
			m.String(key)
		}
	})
}

// A file may shrink while it is read, and a device may fail.
func TestReaderFails(t *testing.T) {
	t.Parallel()
	content := gguftest.Header(meta, tensors)
	_, _, _, err := gguf.ParseHeader(bytes.NewReader(content[:50]), int64(len(content)))
	assert.ErrorContains(t, err, "was cut short")
	_, _, _, err = gguf.ParseHeader(io.MultiReader(bytes.NewReader(content[:50]), failing{}), int64(len(content)))
	assert.ErrorIs(t, err, io.ErrNoProgress)
	_, _, _, err = gguf.ParseHeader(failing{}, int64(len(content)))
	assert.ErrorIs(t, err, io.ErrNoProgress)
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrNoProgress }

// A sparse file can claim any size at no cost; what is read of it stays bounded.
func TestHeaderTooLarge(t *testing.T) {
	t.Parallel()
	content := start(0, 2, func(e *gguftest.Encoder) {
		e.Pair("b", "c")
		array(e, 10, 1<<28)
	})
	_, _, _, err := gguf.ParseHeader(bytes.NewReader(content), 8<<30)
	assert.ErrorContains(t, err, "the header is larger than the 256 MiB that are accepted")
}
