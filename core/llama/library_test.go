package llama

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/platform/dynlib"
)

func TestAMissingLibraryIsNamed(t *testing.T) {
	t.Parallel()
	all := []string{"ggml-base", "ggml", "llama"}
	for _, missing := range all {
		dir := t.TempDir()
		for _, name := range all {
			if name != missing {
				write(t, filepath.Join(dir, dynlib.Name(name)), nil)
			}
		}
		err := (&Library{Dir: dir}).open()
		require.ErrorIs(t, err, ErrMissing)
		assert.EqualError(t, err, "the llama.cpp libraries are missing: "+dynlib.Name(missing)+" is not in "+dir+
			"; unpack the whole archive and keep its files together, or run `go tool mage build`")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, dynlib.Name("ggml-vulkan")), nil)
	write(t, filepath.Join(dir, dynlib.Name("ggml-base")), nil)
	err := (&Library{Dir: dir}).loadCPU()
	require.ErrorIs(t, err, ErrMissing)
	assert.EqualError(t, err, "the llama.cpp libraries are missing: no CPU module ("+dynlib.Name("ggml-cpu-*")+") is in "+dir+
		"; unpack the whole archive and keep its files together")

	require.ErrorIs(t, (&Library{Dir: filepath.Join(dir, "none")}).open(), ErrMissing)
	require.ErrorIs(t, (&Library{Dir: filepath.Join(dir, "none")}).loadCPU(), os.ErrNotExist)
}

func TestAWrongLibraryIsNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		put  func(t *testing.T, path string)
		says string
	}{
		{"cut", func(t *testing.T, path string) {
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			write(t, path, b[:len(b)/2])
		}, "the llama.cpp library " + dynlib.Name("llama") + " does not load: "},
		{"of another release", func(t *testing.T, path string) {
			module(t, path, filepath.Join(t.TempDir(), "marker"), "API=2")
		}, dynlib.Name("llama") + " is not the llama.cpp release this program was built for: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, program := install(t, Module.isCPU)
			c.put(t, filepath.Join(dir, dynlib.Name("llama")))
			o := start(t, program, dir)
			assert.Contains(t, o.Error, c.says)
			assert.NotContains(t, o.Error, "\n")
			assert.Empty(t, o.log)
		})
	}
}

func TestOneSetOfLibrariesPerProcess(t *testing.T) {
	l := library(t)
	again, err := Load(l.Dir)
	require.NoError(t, err)
	assert.Same(t, l, again)
	other := t.TempDir()
	_, err = Load(other)
	require.ErrorContains(t, err, other)
	require.ErrorContains(t, err, "in use already")
}

func TestNamesAndNumbers(t *testing.T) {
	l := library(t)
	assert.Equal(t, "NONE", l.OpName(l.OpNone))
	assert.Equal(t, "MUL_MAT_ID", l.OpName(l.OpMulMatID))
	assert.Less(t, l.op("NO_SUCH_OPERATION"), int32(0))
	for _, name := range []string{"f32", "f16", "bf16", "q8_0", "q4_0"} {
		n, err := l.KVType(name)
		require.NoError(t, err)
		assert.Equal(t, name, l.TypeName(n))
	}
	for _, name := range []string{"", "f17", "F16"} {
		_, err := l.KVType(name)
		require.ErrorContains(t, err, "is no ggml type")
	}
	assert.Regexp(t, `^llama\.cpp \S+, cpu`, l.Version())
	assert.True(t, l.BuftIsHost(l.CPUBufferType()))
}
