package synth

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/gguf"
)

// short is a preset with few layers, to be written in no time.
func short(t *testing.T, name string) Spec {
	t.Helper()
	s, err := Named(name)
	require.NoError(t, err)
	s.Layers = 3
	return s
}

func writeTo(t *testing.T, dir string, s Spec) []string {
	t.Helper()
	paths, err := Write(context.Background(), filepath.Join(dir, "m.gguf"), s, nil)
	require.NoError(t, err)
	return paths
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// Every preset is read back by the project's own reader, which knows nothing of this package.
func TestPresetsAreReadBack(t *testing.T) {
	t.Parallel()
	for _, name := range Presets() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := short(t, name)
			if s.Embed > 512 {
				s.Experts, s.Layers = 8, 1 // the shape of a benchmark without its size
			}
			paths := writeTo(t, t.TempDir(), s)
			f, err := gguf.Open(paths[0])
			require.NoError(t, err)

			arch, ok := f.Meta.String("general.architecture")
			require.True(t, ok)
			assert.Equal(t, string(s.Arch), arch)
			experts, ok := f.Meta.Uint(arch + ".expert_count")
			require.True(t, ok)
			assert.EqualValues(t, s.Experts, experts)
			texts, ok := f.Meta.Strings("tokenizer.ggml.tokens")
			require.True(t, ok)
			assert.Len(t, texts, vocabulary)

			size, err := Size(s)
			require.NoError(t, err)
			var onDisk, inShard int64
			require.Len(t, f.Shards, max(s.Shards, 1))
			for i, sh := range f.Shards {
				assert.Equal(t, paths[i], sh.Path)
				onDisk += sh.Size
			}
			assert.Equal(t, size, onDisk)

			want := build(s).tensors
			require.Len(t, f.Tensors, len(want))
			shard := -1
			for i, got := range f.Tensors {
				if got.Shard != shard {
					shard, inShard = got.Shard, f.Shards[got.Shard].DataStart
				}
				assert.Equal(t, want[i].name, got.Name)
				assert.Equal(t, want[i].size(), got.Size, got.Name)
				assert.Equal(t, want[i].kind.String(), got.Type.String(), got.Name)
				assert.Equal(t, inShard, got.Offset, got.Name)
				inShard += padded(got.Size)
			}
			if s.HeadShard {
				assert.Equal(t, 1, f.Tensors[0].Shard)
				assert.Less(t, f.Shards[0].Size-f.Shards[0].DataStart, int64(alignment), "the first shard has no data")
			}
		})
	}
}

func TestOddSlicesAreNoMultipleOfASector(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"qwen3moe-odd-20m", "gpt-oss-20m"} {
		s, err := Named(name)
		require.NoError(t, err)
		assert.NotZero(t, s.Mix[0].Down.bytesOf(int64(s.FF)*int64(s.Embed))%512, name)
	}
}

func TestSameSeedSameWeights(t *testing.T) {
	t.Parallel()
	weights := func(s Spec) map[string][32]byte {
		f, err := gguf.Open(writeTo(t, t.TempDir(), s)[0])
		require.NoError(t, err)
		sums := make(map[string][32]byte)
		for _, tensor := range f.Tensors {
			file, err := os.ReadFile(f.Shards[tensor.Shard].Path)
			require.NoError(t, err)
			sums[tensor.Name] = sha256.Sum256(file[tensor.Offset : tensor.Offset+tensor.Size])
		}
		return sums
	}
	s := short(t, "qwen3moe-20m")
	s.Layers = 1
	first := weights(s)
	assert.Equal(t, first, weights(s))

	s.Shards = 2
	assert.Equal(t, first, weights(s), "cutting into shards changes no weight")

	s.Seed++
	for name, sum := range weights(s) {
		if filepath.Ext(name) == ".weight" && !isNorm(name) {
			assert.NotEqual(t, first[name], sum, name)
		}
	}
}

func isNorm(name string) bool {
	matched, err := filepath.Match("*norm.weight", name)
	return err == nil && matched
}

func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	s := short(t, "qwen3moe-shards-20m")

	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		_, err := Write(ctx, filepath.Join(dir, "m.gguf"), s, func(written, total int64) {
			if written > total/2 {
				cancel()
			}
		})
		require.ErrorIs(t, err, context.Canceled)
		assert.Empty(t, names(t, dir))
	})

	t.Run("cancelled, over an older model", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		old := writeTo(t, dir, s)
		before, err := os.ReadFile(old[0])
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		changed := s
		changed.Seed = 99
		_, err = Write(ctx, filepath.Join(dir, "m.gguf"), changed, nil)
		require.ErrorIs(t, err, context.Canceled)
		after, err := os.ReadFile(old[0])
		require.NoError(t, err)
		assert.Equal(t, before, after)
		assert.Len(t, names(t, dir), 3)
	})

	t.Run("the last shard can't get its name", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		obstacle := filepath.Join(Files(filepath.Join(dir, "m.gguf"), s)[2], "in the way")
		require.NoError(t, os.MkdirAll(obstacle, 0o755))
		_, err := Write(context.Background(), filepath.Join(dir, "m.gguf"), s, nil)
		require.Error(t, err)
		assert.Equal(t, []string{"m-00003-of-00003.gguf"}, names(t, dir))
	})

	t.Run("no such directory", func(t *testing.T) {
		t.Parallel()
		_, err := Write(context.Background(), filepath.Join(t.TempDir(), "missing", "m.gguf"), s, nil)
		require.ErrorIs(t, err, os.ErrNotExist)
	})
}

func TestProgressEndsAtTheTotal(t *testing.T) {
	t.Parallel()
	s := short(t, "qwen3moe-20m")
	var last, total int64
	_, err := Write(context.Background(), filepath.Join(t.TempDir(), "m.gguf"), s, func(written, all int64) {
		assert.Greater(t, written, last)
		last, total = written, all
	})
	require.NoError(t, err)
	assert.Equal(t, total, last)
	size, err := Size(s)
	require.NoError(t, err)
	assert.Equal(t, size, total)
}

func TestTooLittleRoom(t *testing.T) {
	t.Parallel()
	shards := cut("m.gguf", short(t, "qwen3moe-20m"))
	need := total(shards)
	free := func(n int64, err error) func(string) (int64, error) {
		return func(string) (int64, error) { return n, err }
	}
	require.NoError(t, room("models", shards, free(need, nil)))
	require.ErrorContains(t, room("models", shards, free(need-1, nil)), "not enough space in models: the model takes")
	broken := errors.New("no such device")
	require.ErrorIs(t, room("models", shards, free(0, broken)), broken)
}

func TestBadSpecsAreRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*Spec)
		says   string
	}{
		"architecture":     {func(s *Spec) { s.Arch = "llama" }, `unknown architecture "llama"`},
		"layers":           {func(s *Spec) { s.Layers = 0 }, "0 layers"},
		"experts":          {func(s *Spec) { s.Experts = 1 }, "1 experts"},
		"width":            {func(s *Spec) { s.Used = 33 }, "33 experts used of 32"},
		"embedding":        {func(s *Spec) { s.Embed = 250 }, "embedding of 250"},
		"expert width":     {func(s *Spec) { s.FF = 0 }, "experts 0 wide"},
		"heads":            {func(s *Spec) { s.Heads = 3 }, "3 heads can't share 2"},
		"no heads of keys": {func(s *Spec) { s.KVHeads = 0 }, "share 0"},
		"head":             {func(s *Spec) { s.HeadDim = 20 }, "heads of 20"},
		"shards":           {func(s *Spec) { s.HeadShard = true }, "wants a second"},
		"locality":         {func(s *Spec) { s.Locality = -1 }, "locality"},
		"no types":         {func(s *Spec) { s.Mix = nil }, "no types"},
		"blocks":           {func(s *Spec) { s.FF, s.Mix = 224, []Mix{{Q4_K, Q4_K}} }, "rows of 224 elements can't be q4_K"},
		"expert type":      {func(s *Spec) { s.Mix = []Mix{{F16, F16}} }, "experts can't be f16"},
		"unknown type":     {func(s *Spec) { s.Mix = []Mix{{Type(99), Q4_0}} }, "experts can't be type 99"},
		"dense type":       {func(s *Spec) { s.Dense = Q6_K }, "dense set can't be q6_K"},
		"dense layers":     {func(s *Spec) { s.DenseLead = 1 }, "qwen3moe has no leading dense"},
		"all dense":        {func(s *Spec) { s.Arch, s.Shared, s.DenseLead = GLM4MoE, 1, 6 }, "6 leading dense layers of 6"},
		"shared":           {func(s *Spec) { s.Arch = GLM4MoE }, "wants a shared expert"},
		"fused":            {func(s *Spec) { s.FusedGateUp = true }, "no fused gate and up"},
		"mtp":              {func(s *Spec) { s.MTP = true }, "MTP"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			_, err := Write(context.Background(), filepath.Join(dir, "m.gguf"), small.with(test.change), nil)
			require.ErrorContains(t, err, test.says)
			assert.Empty(t, names(t, dir))
		})
	}
}

func TestSizedIsAboutAsLargeAsAsked(t *testing.T) {
	t.Parallel()
	for _, bytes := range []int64{20e6, 50e6, 200e6, 1e9, 3e9, 8e9, 20e9, 100e9} {
		size, err := Size(Sized(bytes))
		require.NoError(t, err)
		assert.LessOrEqual(t, size, bytes)
		assert.Greater(t, size, bytes*4/5, "asked for %d", bytes)
	}
}

func TestUnknownPresetNamesTheKnown(t *testing.T) {
	t.Parallel()
	_, err := Named("llama-20m")
	require.ErrorContains(t, err, "qwen3moe-20m")
}
