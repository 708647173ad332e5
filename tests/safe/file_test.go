//go:build unix

package safe

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/platform/memory"
)

// Every file that is no model, or not all of one, is refused in one line that names it, before anything is loaded.
func TestFilesThatCannotRun(t *testing.T) {
	t.Parallel()
	whole := model(t, moe)[0]
	head := header(t, whole)
	f := opened(t, whole)
	table := int64(bytes.Index(head, []byte("blk.0.attn_norm.weight")))
	last := f.Tensors[len(f.Tensors)-1]
	cut := func(n int64) func(t *testing.T, path string) {
		return func(t *testing.T, path string) { copied(t, whole, path, n) }
	}
	content := func(b []byte) func(t *testing.T, path string) {
		return func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, b, 0o644)) }
	}
	patched := func(at int, with []byte) func(t *testing.T, path string) {
		b := bytes.Clone(head)
		copy(b[at:], with)
		return func(t *testing.T, path string) {
			content(b)(t, path)
			require.NoError(t, os.Truncate(path, f.Shards[0].Size))
		}
	}
	changed := func(m made, change func(name string, dims []int64) []int64) func(t *testing.T, path string) {
		m.change = change
		return func(t *testing.T, path string) { m.write(t, path) }
	}
	other := small
	other.arch = "nosuch"
	key := func(name string) int { return bytes.Index(head, []byte(name)) + len(name) }
	for _, c := range []struct {
		name string
		make func(t *testing.T, path string)
		want string
	}{
		{"empty", content(nil), "not a GGUF file"},
		{"text", content([]byte("This is a page that says: log in first.\n")), "not a GGUF file"},
		{"magic-alone", cut(4), "cut short"},
		{"cut-in-the-counts", cut(20), "cut short"},
		{"cut-in-the-metadata", cut(int64(key("tokenizer.ggml.tokens")) + 100), "cut short"},
		{"cut-in-the-tensor-table", cut(table + 30), "cut short"},
		{"cut-before-the-data", cut(int64(len(head))), "cut short"},
		{"cut-in-the-data", cut(f.Shards[0].Size / 2), "cut short"},
		{"cut-by-a-byte", cut(last.Offset + last.Size - 1), "cut short"},
		{"2^40-tensors", patched(8, little(uint64(1)<<40)), "tensors; at most"},
		{"2^63-pairs", patched(16, little(uint64(1)<<63)), "metadata pairs; at most"},
		{"a-key-of-2^60-bytes", patched(24, little(uint64(1)<<60)), "bytes; at most"},
		{"2^50-words", patched(key("tokenizer.ggml.tokens")+8, little(uint64(1)<<50)), "elements; at most"},
		{"2^28-words", patched(key("tokenizer.ggml.tokens")+8, little(uint64(1)<<28)), "cut short"},
		{"2^31-layers", patched(key("qwen3moe.block_count")+4, little(uint32(1)<<31)), "block"},
		{"2^32-experts", patched(key("qwen3moe.expert_count")+4, little(uint32(1<<32-1))), "expert"},
		{"0-experts-used", patched(key("qwen3moe.expert_used_count")+4, little(uint32(0))), "experts"},
		{"version-9", patched(4, little(uint32(9))), "version 9"},
		{"big-endian", patched(4, []byte{0, 0, 0, 3}), "big-endian"},
		{"directory", func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o755)) }, "a directory"},
		{"pipe", func(t *testing.T, path string) { require.NoError(t, syscall.Mkfifo(path, 0o644)) }, "not a regular file"},
		{"nothing", func(*testing.T, string) {}, "no such file"},
		{"link-to-nothing", func(t *testing.T, path string) { require.NoError(t, os.Symlink(path+"-gone", path)) }, "no such file"},
		{"unknown-architecture", func(t *testing.T, path string) { other.write(t, path) }, "unknown model architecture: 'nosuch'"},
		{"no-gate-in-one-layer", changed(small, without("blk.1.ffn_gate_exps.weight")), "blk.1.ffn_gate_exps.weight"},
		{"no-down-in-one-layer", changed(small, without("blk.1.ffn_down_exps.weight")), "layer 1 has an incomplete set"},
		{"no-router", changed(small, without("blk.0.ffn_gate_inp.weight")), "blk.0.ffn_gate_inp.weight"},
		{"fewer-experts-in-one-tensor", changed(small, shaped("blk.1.ffn_up_exps.weight", 64, 64, 3)), "3 experts of a layer's 4"},
		{"flat-experts", changed(small, shaped("blk.0.ffn_up_exps.weight", 64, 64*4)), "1 experts of a layer's 4"},
		{"wider-experts-in-one-tensor", changed(small, shaped("blk.1.ffn_up_exps.weight", 64, 128, 4)), "blk.1.ffn_up_exps.weight"},
		{"experts-of-another-model", changed(small, shaped("blk.0.ffn_down_exps.weight", 32, 64, 4)), "blk.0.ffn_down_exps.weight"},
		{"no-embedding", changed(smallDense, without("token_embd.weight")), "token_embd.weight"},
	} {
		for _, mode := range [][]string{nil, {"--moe-stream"}, {"--auto"}} {
			t.Run(strings.Join(append([]string{c.name}, mode...), ""), func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), c.name+".gguf")
				c.make(t, path)
				csv := filepath.Join(t.TempDir(), "run.csv")
				o := run(t, append([]string{"-m", path, "-p", "a", "-n", "1", "--csv", csv}, mode...)...)
				o.refused(t, badInput, c.name+".gguf", c.want)
				assert.Empty(t, o.stdout)
				assert.NoFileExists(t, csv, "nothing half-written")
			})
		}
	}
}

func without(tensor string) func(string, []int64) []int64 { return shaped(tensor) }

func shaped(tensor string, dims ...int64) func(string, []int64) []int64 {
	return func(name string, was []int64) []int64 {
		if name == tensor {
			return dims
		}
		return was
	}
}

func TestNoPermission(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(scratch, "closed")
	require.NoError(t, os.Mkdir(dir, 0o755))
	path := copied(t, model(t, moe)[0], filepath.Join(dir, "closed.gguf"), -1)
	require.NoError(t, os.Chmod(path, 0))
	c := command("-m", path, "-p", "a")
	if os.Getuid() == 0 { // who may read everything: another user is asked, from where that one may look
		c.Path = copied(t, cli, filepath.Join(dir, "bmoe-cli"), -1)
		require.NoError(t, os.Chmod(c.Path, 0o755))
		c.Dir = "/"
		c.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	wait(t, c).refused(t, badInput, "closed.gguf", "permission denied")
}

func TestShards(t *testing.T) {
	t.Parallel()
	shards := model(t, "qwen3moe-shards-20m")
	require.Len(t, shards, 3)
	in := func(t *testing.T, of ...int) []string {
		dir := t.TempDir()
		var paths []string
		for i, s := range shards {
			to := filepath.Join(dir, filepath.Base(s))
			if slices.Contains(of, i) {
				copied(t, s, to, -1)
			}
			paths = append(paths, to)
		}
		return paths
	}
	for _, mode := range []string{"--no-moe-stream", "--moe-stream"} {
		paths := in(t, 0, 1)
		run(t, "-m", paths[0], "-p", "a", mode).refused(t, badInput, filepath.Base(paths[2]), "is missing")
		paths = in(t, 1, 2)
		run(t, "-m", paths[0], "-p", "a", mode).refused(t, badInput, filepath.Base(paths[0]), "no such file")
		paths = in(t, 0, 1, 2)
		run(t, "-m", paths[1], "-p", "a", mode).refused(t, badInput, filepath.Base(paths[1]), "name the first one", filepath.Base(paths[0]))
		copied(t, shards[1], paths[2], -1)
		run(t, "-m", paths[0], "-p", "a", mode).refused(t, badInput, filepath.Base(paths[2]), "shard 3")
		copied(t, shards[2], paths[2], 1<<20)
		run(t, "-m", paths[0], "-p", "a", mode).refused(t, badInput, filepath.Base(paths[2]), "cut short")
		copied(t, shards[2], paths[2], -1)
		run(t, "-m", paths[0], "-p", "a", "-n", "1", "-c", "64", mode).orderly(t, done)
	}
}

// A model without experts runs as it is, and says so.
func TestDenseModelStreamed(t *testing.T) {
	t.Parallel()
	path := smallDense.write(t, filepath.Join(t.TempDir(), "dense.gguf"))
	o := run(t, "-m", path, "-p", "a", "-n", "2", "-c", "64", "--ignore-eos", "--moe-stream", "--cache-mb", "10")
	o.orderly(t, done)
	first, _, _ := strings.Cut(o.stderr, "\n")
	assert.Contains(t, first, "mode: plain llama.cpp; the model has no experts to stream")
	run(t, "-m", path, "-p", "a", "--n-expert-used", "1", "--moe-stream").refused(t, badInput, "--n-expert-used 1", "no experts")
}

// What does not fit is refused with what would.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	m := model(t, moe)[0]
	facts, err := memory.Read()
	require.NoError(t, err)
	huge := made{arch: "qwen3moe", layers: 1, embed: 4096, ff: 4096, experts: 512, context: 512}
	require.Greater(t, 3*huge.experts*huge.embed*huge.ff*2, facts.Total/4)
	for huge.layers*3*huge.experts*huge.embed*huge.ff*2 < 2*facts.Total {
		huge.layers++
	}
	path := huge.write(t, filepath.Join(t.TempDir(), "huge.gguf"))
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"-m", m, "-c", "2147483647"}, []string{moe, "context of 2147483647 tokens", "-c"}},
		{[]string{"-m", m, "-c", "2147483647", "--moe-stream"}, []string{moe, "context of 2147483647 tokens", "-c"}},
		{[]string{"-m", m, "-c", "2147483647", "--auto"}, []string{moe, "context of 2147483647 tokens", "-c"}},
		{[]string{"-m", m, "-c", "1000000", "--moe-stream", "--memory", "1G"}, []string{moe, "context of 1000000 tokens", "of 1024 MiB (the limit that was asked for)"}},
		{[]string{"-m", m, "-c", "4096", "--moe-stream", "--memory", "64M"}, []string{moe, "computing 4096 tokens at once", "of 64 MiB", "--ubatch"}},
		{[]string{"-m", m, "-c", "100000", "--auto", "--memory", "64M"}, []string{moe, "context of 100000 tokens", "of 64 MiB"}},
		{[]string{"-m", path, "-c", "64", "--moe-stream", "--cache-mb", "100000000"}, []string{"huge.gguf", "a cache of", "--cache-mb"}},
		{[]string{"-m", path, "-c", "64", "--moe-stream", "--memory", "300M", "--dense-weights", "mmap"}, []string{"huge.gguf", "the fewest slots", "of 300 MiB"}},
	} {
		t.Run(strings.Join(c.args[2:], " "), func(t *testing.T) {
			t.Parallel()
			o := run(t, append(c.args, "-p", "a", "-n", "1")...)
			o.refused(t, badInput, c.want...)
			assert.Empty(t, o.stdout)
		})
	}
}

// With little memory the run is slow, and says of what size things are that are below a MiB.
func TestLittleMemory(t *testing.T) {
	t.Parallel()
	o := run(t, "-m", model(t, moe)[0], "-p", "a", "-n", "2", "--ignore-eos", "-c", "256", "--moe-stream", "--memory", "64M")
	o.orderly(t, done)
	assert.Contains(t, o.stderr, "note     0 KiB are left for keeping experts, which is below the 2592 KiB that one token's take")
	assert.NotContains(t, o.stderr, " 0 MiB")
}
