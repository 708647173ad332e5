package llama

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/backends"
	"github.com/bmoe/bmoe/platform/dynlib"
)

// variants are the CPU modules beside this program. There are three wherever llama.cpp has as many.
func variants(t *testing.T) (list []Module) {
	t.Helper()
	all, err := modules(beside(t))
	require.NoError(t, err)
	for _, m := range all {
		if m.isCPU() {
			list = append(list, m)
		}
	}
	require.GreaterOrEqual(t, len(list), min(3, len(backends.CPU(runtime.GOOS, runtime.GOARCH))), "run `go tool mage test`")
	return list
}

func TestOnlyTheBestCPUVariantIsRegistered(t *testing.T) {
	l := library(t)
	best := Module{}
	for _, m := range variants(t) {
		var err error
		m.Score, err = score(m.Path)
		require.NoError(t, err)
		if m.Score > best.Score {
			best = m
		}
	}
	require.Positive(t, best.Score)
	assert.Equal(t, best, l.CPU)
	assert.Contains(t, l.Version(), best.Name)

	assert.Equal(t, 1, registries(l))
	devices := l.Devices()
	require.Len(t, devices, 1)
	assert.Equal(t, l.CPUDevice(), devices[0].Handle)
	assert.EqualValues(t, DeviceCPU, devices[0].Type)
	assert.Positive(t, devices[0].Total)

	// The registry is the best module's own: what its ggml_backend_init gives, and no other's.
	registered := l.DevRegistry(l.CPUDevice())
	if populate.installed { // by a test before this one: the device has a copy
		registered = populate.original
	}
	for _, m := range variants(t) {
		rating, err := score(m.Path)
		require.NoError(t, err)
		if rating == 0 {
			continue // it may not be run here
		}
		h, err := dynlib.OpenModule(m.Path)
		require.NoError(t, err)
		entry, err := dynlib.Symbol(h, "ggml_backend_init")
		require.NoError(t, err)
		registry, _, _ := purego.SyscallN(entry)
		assert.Equal(t, m.Name == best.Name, registry == registered, m.Name)
		require.NoError(t, dynlib.CloseModule(h))
	}
}

func TestModulesAreTakenFromTheProgramsFolderAlone(t *testing.T) {
	t.Parallel()
	dir, program := install(t, Module.isCPU)
	elsewhere, marks := t.TempDir(), t.TempDir()

	// In another folder: the libraries, a better CPU module, an accelerator that the program's folder has too, and one that it
	// has not.
	mark := func(name string) string { return filepath.Join(marks, name) }
	for _, name := range []string{"llama", "ggml", "ggml-base", "ggml-vulkan", "ggml-rpc"} {
		module(t, filepath.Join(elsewhere, dynlib.Name(name)), mark(name), "API=2")
	}
	module(t, filepath.Join(elsewhere, dynlib.Name("ggml-cpu-better")), mark("better"), "API=2", "SCORE=1000000")
	ours := filepath.Join(dir, "ours")
	module(t, filepath.Join(dir, dynlib.Name("ggml-vulkan")), ours, "API=2")
	// The names that the libraries know each other by, which differ from their file names.
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), dynlib.Name("ggml")+".") || strings.HasPrefix(e.Name(), dynlib.Name("ggml-base")+".") {
			module(t, filepath.Join(elsewhere, e.Name()), mark(e.Name()), "API=2")
		}
	}

	env := []string{"GGML_BACKEND_PATH=" + filepath.Join(elsewhere, dynlib.Name("ggml-rpc"))}
	for _, search := range []string{"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PATH"} {
		env = append(env, search+"="+elsewhere+string(filepath.ListSeparator)+os.Getenv(search))
	}
	o := start(t, program, elsewhere, env...)
	assert.Empty(t, o.Error)
	assert.Empty(t, o.LeftOut)
	assert.Empty(t, o.log)
	assert.Equal(t, library(t).CPU.Name, o.CPU.Name)
	assert.Equal(t, filepath.Join(dir, dynlib.Name("ggml-"+o.CPU.Name)), o.CPU.Path)
	assert.Equal(t, 2, o.Registries)
	assert.FileExists(t, ours)
	loaded, err := os.ReadDir(marks)
	require.NoError(t, err)
	assert.Empty(t, loaded, "something outside of the program's folder was loaded")

	// A link to the program leads to its own folder, not the link's.
	link := filepath.Join(elsewhere, "linked-"+filepath.Base(program))
	require.NoError(t, os.Symlink(program, link))
	o = start(t, link, elsewhere, env...)
	assert.Empty(t, o.Error)
	assert.Equal(t, dir, filepath.Dir(o.CPU.Path))
	loaded, err = os.ReadDir(marks)
	require.NoError(t, err)
	assert.Empty(t, loaded)

	// A module is loaded once it lies beside the program.
	rpc := dynlib.Name("ggml-rpc")
	duplicate(t, filepath.Join(elsewhere, rpc), filepath.Join(dir, rpc))
	o = start(t, program, elsewhere, env...)
	assert.Empty(t, o.Error)
	assert.Empty(t, o.LeftOut)
	assert.Equal(t, 3, o.Registries)
	loaded, err = os.ReadDir(marks)
	require.NoError(t, err)
	require.Len(t, loaded, 1)
	assert.Equal(t, "ggml-rpc", loaded[0].Name())
}

// TestBadModulesAreLeftOut puts bad CPU modules beside good ones: each costs one line and the rest works.
func TestBadModulesAreLeftOut(t *testing.T) {
	t.Parallel()
	good, err := os.ReadFile(library(t).CPU.Path)
	require.NoError(t, err)
	marker := filepath.Join(t.TempDir(), "marker")
	for _, c := range []struct {
		name string
		put  func(t *testing.T, path string)
		says string // in the line; "": the module is no fault, just none for this machine
	}{
		{"cut", func(t *testing.T, path string) { write(t, path, good[:len(good)*6/10]) }, "does not load"},
		{"cut in its header", func(t *testing.T, path string) { write(t, path, good[:100]) }, "does not load"},
		{"empty", func(t *testing.T, path string) { write(t, path, nil) }, "does not load"},
		{"text", func(t *testing.T, path string) { write(t, path, bytes.Repeat([]byte("not a library\n"), 1000)) }, "does not load"},
		{"of another processor", func(t *testing.T, path string) { write(t, path, foreign(t, good)) }, "does not load"},
		{"rating itself 0", func(t *testing.T, path string) { module(t, path, marker, "API=2", "SCORE=0") }, ""},
		{"of another release", func(t *testing.T, path string) { module(t, path, marker, "API=1", "SCORE=1000000") }, "API version"},
		{"without a backend", func(t *testing.T, path string) { module(t, path, marker, "SCORE=1000000") }, "returned NULL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, program := install(t, Module.isCPU)
			bad := dynlib.Name("ggml-cpu-aaa")
			c.put(t, filepath.Join(dir, bad))
			o := start(t, program, dir)
			assert.Empty(t, o.Error)
			assert.Equal(t, library(t).CPU.Name, o.CPU.Name)
			assert.Equal(t, 1, o.Registries)
			if c.says == "" {
				assert.Empty(t, o.log)
				return
			}
			assert.Equal(t, 1, strings.Count(o.log, "\n"), o.log)
			assert.Contains(t, o.log, bad)
			assert.Contains(t, o.log, c.says)
		})
	}
}

func TestBadAcceleratorsAreLeftOut(t *testing.T) {
	t.Parallel()
	dir, program := install(t, Module.isCPU)
	marker := filepath.Join(dir, "marker")
	good, err := os.ReadFile(library(t).CPU.Path)
	require.NoError(t, err)
	write(t, filepath.Join(dir, dynlib.Name("ggml-cuda")), good[:len(good)*6/10])
	write(t, filepath.Join(dir, dynlib.Name("ggml-metal")), []byte("text"))
	module(t, filepath.Join(dir, dynlib.Name("ggml-rpc")), marker, "API=1")
	module(t, filepath.Join(dir, dynlib.Name("ggml-sycl")), marker, "API=2", "SCORE=0")
	module(t, filepath.Join(dir, dynlib.Name("ggml-vulkan")), marker, "API=2")
	o := start(t, program, dir)
	assert.Empty(t, o.Error)
	assert.Empty(t, o.log, "what is returned is not printed too")
	assert.Equal(t, 2, o.Registries)
	require.Len(t, o.LeftOut, 4)
	for i, name := range []string{"ggml-cuda", "ggml-metal", "ggml-rpc", "ggml-sycl"} {
		assert.Contains(t, o.LeftOut[i], "the compute module "+dynlib.Name(name)+" does not load: ")
		assert.NotContains(t, o.LeftOut[i], "\n")
	}
	assert.Contains(t, o.LeftOut[2], "API version")
	assert.Contains(t, o.LeftOut[3], "does not suit this machine")
}

func TestNoUsableCPUModule(t *testing.T) {
	t.Parallel()
	dir, program := install(t, func(Module) bool { return false })
	marker := filepath.Join(dir, "marker")
	module(t, filepath.Join(dir, dynlib.Name("ggml-cpu-one")), marker, "API=2", "SCORE=0")
	module(t, filepath.Join(dir, dynlib.Name("ggml-cpu-two")), marker, "API=2", "SCORE=0")
	o := start(t, program, dir)
	assert.Equal(t, "none of the CPU modules in "+dir+" (2) runs on this processor; build one with `go tool mage build`", o.Error)
	assert.Empty(t, o.log)
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, b, 0o755))
}

// foreign is a library whose header says that it is for another processor.
func foreign(t *testing.T, library []byte) []byte {
	t.Helper()
	b := bytes.Clone(library)
	at := 4 // of Mach-O: the processor
	switch {
	case bytes.HasPrefix(b, []byte("\x7fELF")):
		at = 18
	case bytes.HasPrefix(b, []byte("MZ")):
		at = int(binary.LittleEndian.Uint32(b[0x3c:])) + 4
	}
	binary.LittleEndian.PutUint16(b[at:], 0x2a2a)
	return b
}
