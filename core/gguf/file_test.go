package gguf_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/gguf"
	"github.com/bmoe/bmoe/core/gguf/gguftest"
)

var (
	meta = []gguftest.Pair{
		gguftest.KV("general.architecture", "qwen3moe"),
		gguftest.KV("qwen3moe.block_count", uint32(2)),
		gguftest.KV("tokenizer.ggml.tokens", []string{"a", "", "🙂"}),
	}
	tensors = []gguftest.Tensor{
		gguftest.NewTensor("token_embd.weight", gguf.Q4_K, 256, 3),
		gguftest.NewTensor("blk.0.ffn_up_exps.weight", gguf.F16, 7, 3, 2),
		gguftest.NewTensor("output_norm.weight", gguf.F32, 5),
	}
)

// write puts a file into a directory of its own.
func write(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

func TestOpen(t *testing.T) {
	t.Parallel()
	content := gguftest.File(meta, tensors)
	path := write(t, "m.gguf", content)
	f, err := gguf.Open(path)
	require.NoError(t, err)

	start := int64(len(gguftest.Header(meta, tensors)))
	assert.Equal(t, []gguf.Shard{{Path: path, Size: int64(len(content)), DataStart: start}}, f.Shards)
	assert.Equal(t, []gguf.Tensor{
		{Name: "token_embd.weight", Type: gguf.Q4_K, Dims: [4]int64{256, 3, 1, 1}, Size: 432, Offset: start},
		{Name: "blk.0.ffn_up_exps.weight", Type: gguf.F16, Dims: [4]int64{7, 3, 2, 1}, Size: 84, Offset: start + 448},
		{Name: "output_norm.weight", Type: gguf.F32, Dims: [4]int64{5, 1, 1, 1}, Size: 20, Offset: start + 544},
	}, f.Tensors)
	found, ok := f.Tensor("output_norm.weight")
	assert.True(t, ok)
	assert.Equal(t, f.Tensors[2], found)
	_, ok = f.Tensor("output.weight")
	assert.False(t, ok)
	architecture, ok := f.Meta.String("general.architecture")
	assert.True(t, ok)
	assert.Equal(t, "qwen3moe", architecture)
}

func TestOpenWithoutTensors(t *testing.T) {
	t.Parallel()
	var e gguftest.Encoder
	e.Start(0, 1)
	e.Pair("general.architecture", "llama")
	f, err := gguf.Open(write(t, "vocab.gguf", e.Bytes))
	require.NoError(t, err)
	assert.Empty(t, f.Tensors)
	assert.Equal(t, int64(len(e.Bytes)), f.Shards[0].DataStart)
}

func TestAlignment(t *testing.T) {
	t.Parallel()
	for _, align := range []uint32{1, 8, 32, 4096} {
		var e gguftest.Encoder
		e.Start(2, 1)
		e.Pair("general.alignment", align)
		e.Tensor(gguftest.NewTensor("a", gguf.I8, 3), 0)
		e.Tensor(gguftest.NewTensor("b", gguf.I8, 3), uint64(max(3, align)))
		f, err := gguf.OpenHeader(write(t, "m.gguf", e.Bytes))
		require.NoError(t, err, "alignment %d", align)
		assert.Zero(t, f.Shards[0].DataStart%int64(align))
		assert.Less(t, f.Shards[0].DataStart-int64(len(e.Bytes)), int64(align))
		assert.Equal(t, f.Shards[0].DataStart+int64(max(3, align)), f.Tensors[1].Offset)
	}
}

// A header may be cut anywhere, and its data anywhere: every cut is an error that says so, and names the file.
func TestTruncated(t *testing.T) {
	t.Parallel()
	content := gguftest.File(meta, tensors)
	data := len(gguftest.Header(meta, tensors))
	path := filepath.Join(t.TempDir(), "cut.gguf")
	// The last tensor ends 12 bytes before its padding does.
	for size := range len(content) - 12 {
		require.NoError(t, os.WriteFile(path, content[:size], 0o600))
		_, err := gguf.Open(path)
		require.Error(t, err, "%d bytes", size)
		assert.Contains(t, err.Error(), path)
		if size >= 4 {
			assert.Contains(t, err.Error(), "it was cut short or is still being downloaded", "%d bytes", size)
		}
		_, err = gguf.OpenHeader(path)
		if size < data-31 {
			assert.Error(t, err, "header of %d bytes", size)
		} else if size >= data {
			assert.NoError(t, err, "header of %d bytes", size)
		}
	}
	require.NoError(t, os.WriteFile(path, content[:len(content)-12], 0o600))
	_, err := gguf.Open(path)
	assert.NoError(t, err, "padding after the last tensor is not needed")
}

// start is a file that begins well and goes on as the test wants.
func start(tensors, pairs uint64, rest func(e *gguftest.Encoder)) []byte {
	var e gguftest.Encoder
	e.Start(tensors, pairs)
	rest(&e)
	return append(e.Bytes, make([]byte, 4096)...)
}

func TestMalformed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content []byte
		says    string
	}{
		"empty":            {nil, "not a GGUF file: it has only 0 bytes"},
		"three bytes":      {[]byte("GGU"), "not a GGUF file: it has only 3 bytes"},
		"other file":       {[]byte("PK\x03\x04 some archive"), `not a GGUF file: it begins with "PK\x03\x04"`},
		"old version":      {[]byte("GGUF\x01\x00\x00\x00" + "................"), "GGUF version 1; versions 2 and 3 are supported"},
		"new version":      {[]byte("GGUF\x04\x00\x00\x00" + "................"), "GGUF version 4"},
		"big-endian":       {[]byte("GGUF\x00\x00\x00\x03" + "................"), "big-endian"},
		"many tensors":     {start(1<<40, 0, func(*gguftest.Encoder) {}), "1099511627776 tensors; at most"},
		"many pairs":       {start(0, 1<<63, func(*gguftest.Encoder) {}), "9223372036854775808 metadata pairs; at most"},
		"more pairs":       {start(0, 2, func(e *gguftest.Encoder) { e.Pair("a", "b") }), "metadata pair 2 of 2: the key is empty"},
		"long key":         {start(0, 1, func(e *gguftest.Encoder) { e.Pair(string(make([]byte, 1<<16)), "b") }), "a name of 65536 bytes"},
		"key past the end": {start(0, 1, func(e *gguftest.Encoder) { e.Bytes = append(e.Bytes, 0xff, 0xff, 0, 0, 0, 0, 0, 0) }), "ends inside its header"},
		"key twice":        {start(0, 2, func(e *gguftest.Encoder) { e.Pair("a", "b"); e.Pair("a", true) }), `key "a" appears twice`},
		"unknown value":    {start(0, 1, func(e *gguftest.Encoder) { e.Text("a"); e.Bytes = append(e.Bytes, 13, 0, 0, 0) }), `value of "a": unknown value type 13`},
		"arrays in arrays": {start(0, 1, func(e *gguftest.Encoder) { array(e, 9, 1) }), "an array of arrays"},
		"unknown elements": {start(0, 1, func(e *gguftest.Encoder) { array(e, 77, 1) }), "unknown value type 77"},
		"huge array":       {start(0, 1, func(e *gguftest.Encoder) { array(e, 0, 1<<62) }), "an array of 4611686018427387904 elements"},
		"array past end":   {start(0, 1, func(e *gguftest.Encoder) { array(e, 10, 1<<20) }), "ends inside its header"},
		"strings past end": {start(0, 1, func(e *gguftest.Encoder) { array(e, 8, 1<<20) }), "ends inside its header"},
		"string past end":  {start(0, 1, func(e *gguftest.Encoder) { array(e, 8, 1); e.Bytes = append(e.Bytes, 0, 0, 0, 1, 0, 0, 0, 0) }), "ends inside its header"},
		"huge string":      {start(0, 1, func(e *gguftest.Encoder) { array(e, 8, 1); e.Bytes = append(e.Bytes, 0, 0, 0, 0, 0, 0, 0, 0xff) }), "a string of 18374686479671623680 bytes"},
		"alignment 48":     {start(0, 1, func(e *gguftest.Encoder) { e.Pair("general.alignment", uint32(48)) }), "general.alignment is 48, not a power of two"},
		"alignment 0":      {start(0, 1, func(e *gguftest.Encoder) { e.Pair("general.alignment", uint32(0)) }), "general.alignment is 0"},
		"alignment's type": {start(0, 1, func(e *gguftest.Encoder) { e.Pair("general.alignment", uint64(32)) }), "not an unsigned 32-bit number"},
		"alignments":       {start(0, 1, func(e *gguftest.Encoder) { e.Pair("general.alignment", []uint32{32}) }), "not an unsigned 32-bit number"},
		"long tensor name": {start(1, 0, func(e *gguftest.Encoder) { e.Tensor(gguftest.NewTensor(string(make([]byte, 64)), gguf.F32, 1), 0) }), "tensor 1 of 1: a name of 64 bytes"},
		"tensor twice": {start(2, 0, func(e *gguftest.Encoder) {
			e.Tensor(gguftest.NewTensor("a", gguf.F32, 8), 0)
			e.Tensor(gguftest.NewTensor("a", gguf.F32, 8), 32)
		}), `two tensors are called "a"`},
		"five dimensions": {start(1, 0, func(e *gguftest.Encoder) { e.Tensor(gguftest.NewTensor("a", gguf.F32, 1, 1, 1, 1, 1), 0) }), `"a" has 5 dimensions`},
		"negative":        {start(1, 0, func(e *gguftest.Encoder) { e.Tensor(gguftest.NewTensor("a", gguf.F32, -4), 0) }), "a dimension of -4"},
		"overflow":        {start(1, 0, func(e *gguftest.Encoder) { e.Tensor(gguftest.NewTensor("a", gguf.F32, 1<<32, 1<<32), 0) }), "more than a file can hold"},
		"overflow to 0":   {start(1, 0, func(e *gguftest.Encoder) { e.Tensor(gguftest.NewTensor("a", gguf.F32, 1<<31, 1<<31, 1<<31, 1<<31), 0) }), "more than a file can hold"},
		"removed type":    {start(1, 0, func(e *gguftest.Encoder) { e.Tensor(gguftest.NewTensor("a", 31, 32), 0) }), `"a": unknown or removed tensor type 31`},
		"unknown type":    {start(1, 0, func(e *gguftest.Encoder) { e.Tensor(gguftest.NewTensor("a", 1000, 32), 0) }), "unknown or removed tensor type 1000"},
		"uneven rows":     {start(1, 0, func(e *gguftest.Encoder) { e.Tensor(gguftest.NewTensor("a", gguf.Q4_K, 128, 2), 0) }), "rows of 128 elements, but q4_K holds them in blocks of 256"},
		"overlap": {start(2, 0, func(e *gguftest.Encoder) {
			e.Tensor(gguftest.NewTensor("a", gguf.F32, 16), 0)
			e.Tensor(gguftest.NewTensor("b", gguf.F32, 8), 32)
		}), `tensor "b" is said to begin at byte 32 of the data, but the tensors before it end at 64`},
		"gap": {start(1, 0, func(e *gguftest.Encoder) { e.Tensor(gguftest.NewTensor("a", gguf.F32, 16), 64) }), "is said to begin at byte 64"},
		"unaligned": {start(2, 0, func(e *gguftest.Encoder) {
			e.Tensor(gguftest.NewTensor("a", gguf.F32, 1), 0)
			e.Tensor(gguftest.NewTensor("b", gguf.F32, 1), 4)
		}), "is said to begin at byte 4"},
		"offset past int64": {start(1, 0, func(e *gguftest.Encoder) { e.Tensor(gguftest.NewTensor("a", gguf.F32, 16), 1<<63) }), `"a" has the offset 9223372036854775808`},
		"data past the end": {start(1, 0, func(e *gguftest.Encoder) { e.Tensor(gguftest.NewTensor("a", gguf.F32, 1<<40), 0) }), `tensor "a" should end at byte`},
		"too much data": {start(1<<8, 0, func(e *gguftest.Encoder) {
			for i := range 1 << 8 {
				e.Tensor(gguftest.NewTensor(fmt.Sprint(i), gguf.I8, 1<<56), uint64(i)<<56)
			}
		}), "more bytes than a file can have"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := write(t, "m.gguf", c.content)
			_, err := gguf.Open(path)
			require.Error(t, err)
			assert.ErrorContains(t, err, path+": ")
			assert.ErrorContains(t, err, c.says)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

// array begins an array of n elements under the key "a".
func array(e *gguftest.Encoder, elements byte, n uint64) {
	e.Text("a")
	e.Bytes = append(e.Bytes, 9, 0, 0, 0, elements, 0, 0, 0)
	for shift := 0; shift < 64; shift += 8 {
		e.Bytes = append(e.Bytes, byte(n>>shift))
	}
}

func TestNotAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := gguf.Open(dir)
	assert.EqualError(t, err, dir+": a directory, not a model file")

	_, err = gguf.Open(filepath.Join(dir, "none.gguf"))
	assert.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, filepath.Join(dir, "none.gguf")+": ")

	_, err = gguf.Open(os.DevNull)
	assert.EqualError(t, err, os.DevNull+": not a regular file")
}

// shards writes a model of three files: metadata alone, then two tensors, then one. It returns the paths.
func shards(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for i, part := range [][]gguftest.Tensor{nil, tensors[:2], tensors[2:]} {
		pairs := []gguftest.Pair{gguftest.KV("split.no", uint16(i)), gguftest.KV("split.count", uint16(3)), gguftest.KV("split.tensors.count", int32(3))}
		if i == 0 {
			pairs = append(pairs, meta...)
		}
		paths = append(paths, filepath.Join(dir, fmt.Sprintf("m-%05d-of-00003.gguf", i+1)))
		require.NoError(t, os.WriteFile(paths[i], gguftest.File(pairs, part), 0o600))
	}
	return paths
}

func TestShards(t *testing.T) {
	t.Parallel()
	paths := shards(t)
	f, err := gguf.Open(paths[0])
	require.NoError(t, err)
	require.Len(t, f.Shards, 3)
	require.Len(t, f.Tensors, 3)
	for i, of := range []int{1, 1, 2} {
		assert.Equal(t, tensors[i].Name, f.Tensors[i].Name)
		assert.Equal(t, of, f.Tensors[i].Shard)
	}
	assert.Equal(t, f.Shards[1].DataStart, f.Tensors[0].Offset)
	assert.Equal(t, f.Shards[2].DataStart, f.Tensors[2].Offset)
	for i, s := range f.Shards {
		assert.Equal(t, paths[i], s.Path)
	}
}

func TestBrokenShards(t *testing.T) {
	t.Parallel()
	rewrite := func(i int, pairs []gguftest.Pair, part []gguftest.Tensor) func(*testing.T, []string) string {
		return func(t *testing.T, paths []string) string {
			require.NoError(t, os.WriteFile(paths[i], gguftest.File(pairs, part), 0o600))
			return paths[0]
		}
	}
	for name, c := range map[string]struct {
		breaks func(t *testing.T, paths []string) string // returns the path to open
		says   string
		names  int // the shard that the error names
	}{
		"missing": {func(t *testing.T, paths []string) string {
			require.NoError(t, os.Remove(paths[2]))
			return paths[0]
		}, "shard 3 of the model's 3 is missing; put it beside the others", 2},
		"not the first": {func(t *testing.T, paths []string) string { return paths[1] }, "shard 2 of 3; name the first one, ", 1},
		"renamed": {func(t *testing.T, paths []string) string {
			require.NoError(t, os.Rename(paths[0], paths[0]+".bak"))
			return paths[0] + ".bak"
		}, `whose name must end in "-00001-of-00003.gguf"`, 0},
		"cut": {func(t *testing.T, paths []string) string {
			require.NoError(t, os.Truncate(paths[1], 700))
			return paths[0]
		}, "was cut short", 1},
		"no GGUF": {func(t *testing.T, paths []string) string {
			require.NoError(t, os.Truncate(paths[1], 0))
			return paths[0]
		}, "not a GGUF file", 1},
		"a directory": {func(t *testing.T, paths []string) string {
			require.NoError(t, os.Remove(paths[1]))
			require.NoError(t, os.Mkdir(paths[1], 0o700))
			return paths[0]
		}, "a directory", 1},
		"wrong order": {func(t *testing.T, paths []string) string {
			require.NoError(t, os.Rename(paths[1], paths[2]))
			return rewrite(1, []gguftest.Pair{gguftest.KV("split.no", uint16(2))}, nil)(t, paths)
		}, "does not say that it is shard 2", 1},
		"no number in the first": {rewrite(0, []gguftest.Pair{gguftest.KV("split.count", uint16(3))}, nil), "does not say which", 0},
		"no number":              {rewrite(1, meta, tensors[:2]), "does not say that it is shard 2", 1},
		"wrong count of shards":  {rewrite(0, []gguftest.Pair{gguftest.KV("split.no", uint16(0)), gguftest.KV("split.count", uint16(4))}, nil), `whose name must end in "-00001-of-00004.gguf"`, 0},
		"wrong count of tensors": {rewrite(2, []gguftest.Pair{gguftest.KV("split.no", uint16(2))}, nil), "the model should have 3 tensors, but its 3 shards have 2", 0},
		"no count of tensors":    {rewrite(0, []gguftest.Pair{gguftest.KV("split.no", uint16(0)), gguftest.KV("split.count", uint16(3))}, nil), "does not say how many tensors", 0},
		"tensor in two":          {rewrite(2, []gguftest.Pair{gguftest.KV("split.no", uint16(2))}, tensors[:1]), `tensor "token_embd.weight" is already in another shard`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			paths := shards(t)
			_, err := gguf.Open(c.breaks(t, paths))
			require.Error(t, err)
			assert.ErrorContains(t, err, c.says)
			assert.ErrorContains(t, err, paths[c.names])
		})
	}
}
