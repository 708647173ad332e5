package gguf_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/gguf"
)

// The figures are what ggml_type_name, ggml_blck_size and ggml_type_size of the pinned ggml answer.
func TestTypes(t *testing.T) {
	t.Parallel()
	known := 0
	for code := range gguf.Type(100) {
		elements, bytes := code.Block()
		if !code.Known() {
			assert.Zero(t, elements)
			assert.Zero(t, bytes)
			assert.Zero(t, code.Bytes(256))
			_, err := code.MarshalText()
			assert.Error(t, err)
			continue
		}
		known++
		assert.Equal(t, 3*bytes, code.Bytes(3*elements))
		text, err := code.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, code.String(), string(text))
		var back gguf.Type
		require.NoError(t, back.UnmarshalText(text))
		assert.Equal(t, code, back)
	}
	assert.Equal(t, 35, known)
	for typ, want := range map[gguf.Type]struct {
		name string
		size int64 // of 4096 elements
	}{
		gguf.F32:   {"f32", 16384},
		gguf.BF16:  {"bf16", 8192},
		gguf.Q8_0:  {"q8_0", 4352},
		gguf.Q4_K:  {"q4_K", 2304},
		gguf.Q6_K:  {"q6_K", 3360},
		gguf.IQ1_S: {"iq1_s", 800},
		gguf.MXFP4: {"mxfp4", 2176},
		gguf.NVFP4: {"nvfp4", 2304},
		gguf.Q1_0:  {"q1_0", 576},
	} {
		assert.Equal(t, want.name, typ.String())
		assert.Equal(t, want.size, typ.Bytes(4096), want.name)
	}
	assert.Equal(t, "type 4", gguf.Type(4).String())
	var typ gguf.Type
	assert.EqualError(t, typ.UnmarshalText([]byte("q4_2")), `no tensor type is called "q4_2"`)
}

func TestSize(t *testing.T) {
	t.Parallel()
	size, err := gguf.Q4_K.Size([4]int64{2048, 512, 256, 1})
	require.NoError(t, err)
	assert.Equal(t, int64(256*589824), size)
	size, err = gguf.F32.Size([4]int64{4, 0, 1, 1})
	require.NoError(t, err)
	assert.Zero(t, size)
}
