package llama

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/backends"
)

// release writes a small llama.cpp: its headers, the options that we give and the table of CPU modules.
func release(t *testing.T, dir string) {
	t.Helper()
	var cmake strings.Builder
	cmake.WriteString("set(LLAMA_VERSION_MAJOR 1)\nset(LLAMA_VERSION_MINOR 2)\nset(LLAMA_VERSION_PATCH 3)\n")
	for _, o := range options() {
		cmake.WriteString("option(" + o + " \"\" OFF)\n")
	}
	for _, system := range [][2]string{{"linux", "amd64"}, {"linux", "arm64"}, {"android", "arm64"}, {"darwin", "arm64"}} {
		for _, m := range backends.CPU(system[0], system[1]) {
			cmake.WriteString("ggml_add_cpu_backend_variant(" + strings.TrimPrefix(m.Name, "cpu-") + "  " + strings.Join(m.Needs, " ") + ")\n")
		}
	}
	put(t, filepath.Join(dir, "CMakeLists.txt"), cmake.String())
	for _, name := range []string{"include/llama.h", "ggml/include/ggml.h", "ggml/src/ggml-backend-impl.h", "ggml/src/ggml-impl.h"} {
		put(t, filepath.Join(dir, filepath.FromSlash(name)), "int "+filepath.Base(name[:len(name)-2])[:4]+";\n")
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func edit(t *testing.T, path string, from, to string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), from)
	put(t, path, strings.ReplaceAll(string(text), from, to))
}

func TestWhatMovedBetweenReleasesIsNamed(t *testing.T) {
	t.Parallel()
	before, after := t.TempDir(), t.TempDir()
	release(t, before)
	release(t, after)
	assert.Equal(t, "v1.2.3", releaseOf(after))
	moved, err := differences(before, after)
	require.NoError(t, err)
	assert.Empty(t, moved)

	put(t, filepath.Join(after, "ggml", "src", "ggml-impl.h"), "int ggml;\nint more;\n")
	put(t, filepath.Join(after, "include", "llama-new.h"), "int x;\n")
	cmake := filepath.Join(after, "CMakeLists.txt")
	edit(t, cmake, "option(GGML_BACKEND_DL ", "option(GGML_BACKEND_PLUGINS ")
	edit(t, cmake, "variant(haswell  SSE42", "variant(haswell  SSE42 MOVBE")
	edit(t, cmake, "variant(zen4 ", "variant(zen6 ")
	moved, err = differences(before, after)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"CPU module cpu-haswell takes AVX AVX2 BMI2 F16C FMA MOVBE SSE42, not AVX AVX2 BMI2 F16C FMA SSE42",
		"CPU module cpu-zen4 is gone from llama.cpp",
		"CPU module cpu-zen6 is new",
		"header ggml/src/ggml-impl.h: 1 lines came, 0 went",
		"header include/llama-new.h: changed",
		"option GGML_BACKEND_DL is gone from llama.cpp",
	}, moved)
}

// A checkout whose pin is moved to another tag of a clone has that tag's tree in the pin; to its own tag, it stays as it is.
func TestBump(t *testing.T) {
	clone, root := t.TempDir(), t.TempDir()
	git := func(args ...string) {
		out, err := exec.Command("git", append([]string{"-C", clone, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	git("init", "-q")
	release(t, clone)
	git("add", "-A")
	git("commit", "-qm", "one")
	git("tag", "v1.2.3")
	tree, err := TreeID(t.Context(), clone)
	require.NoError(t, err)
	pin := Pin{Tag: "v1.2.3", Tree: tree, Repository: "nowhere", NPM: "none@1", Bundle: "b"}
	require.NoError(t, os.Mkdir(filepath.Join(root, "llama.cpp"), 0o755))
	require.NoError(t, writePin(root, pin))
	t.Setenv(SourceVariable, clone)

	moved, err := Bump(t.Context(), root, "v1.2.3", "")
	require.NoError(t, err)
	assert.Empty(t, moved)
	got, err := ReadPin(root)
	require.NoError(t, err)
	assert.Equal(t, pin, got)

	git("checkout", "-q", "-b", "next")
	edit(t, filepath.Join(clone, "include", "llama.h"), "int", "long")
	git("commit", "-qam", "two")
	git("tag", "v1.3.0")
	next, err := TreeID(t.Context(), clone)
	require.NoError(t, err)
	git("checkout", "-q", "v1.2.3")
	moved, err = Bump(t.Context(), root, "v1.3.0", "")
	require.NoError(t, err)
	assert.Equal(t, []string{"header include/llama.h: 1 lines came, 1 went"}, moved)
	got, err = ReadPin(root)
	require.NoError(t, err)
	assert.Equal(t, "v1.3.0", got.Tag)
	assert.Equal(t, next, got.Tree)

	_, err = Bump(t.Context(), root, "v9.9.9", "")
	require.Error(t, err)
}
