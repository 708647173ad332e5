package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/manifest"
	"github.com/bmoe/bmoe/core/params"
)

// released is a folder with two files, one dropped in, and a manifest of the two.
func released(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name string) { require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644)) }
	put("libllama.so")
	put("README.md")
	files, err := manifest.Of(dir)
	require.NoError(t, err)
	require.NoError(t, manifest.Manifest{
		Version: "1.2.3", System: "linux/amd64", Llama: manifest.Llama{Release: "v0.5.0", Tree: "fd57"},
		Modules: []manifest.Module{{Name: "base", Options: []string{"-DGGML_CPU=OFF"}}},
		LeftOut: []manifest.LeftOut{{Name: "cuda", Why: "nvcc is not there"}}, Files: files,
	}.Write(dir))
	put("libggml-mine.so")
	return dir
}

func TestTheReleaseIsReadBackAndChecked(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	dir := released(t)
	s.natives = fakeNatives{dir: dir}
	require.Equal(t, exitDone, s.play("--version -v"), s.err)
	for _, said := range []string{"release 1.2.3 for linux/amd64, in " + dir, "llama.cpp v0.5.0, tree fd57", "base: -DGGML_CPU=OFF", "left out: cuda: nvcc is not there",
		"not of the release: libggml-mine.so", "all 2 files are as they were released"} {
		assert.Contains(t, s.out.String(), said)
	}

	require.NoError(t, os.WriteFile(filepath.Join(dir, "libllama.so"), []byte("libllama.so, but another"), 0o644))
	require.NoError(t, os.Remove(filepath.Join(dir, "README.md")))
	s = newStage(t)
	s.natives = fakeNatives{dir: dir}
	require.Equal(t, exitFailed, s.play("--version -v"))
	assert.Contains(t, s.err.String(), "libllama.so is changed, README.md is missing")
	assert.NotContains(t, s.out.String(), "as they were")

	s = newStage(t)
	s.natives = fakeNatives{dir: t.TempDir()}
	require.Equal(t, exitDone, s.play("--version -v"))
	assert.Contains(t, s.out.String(), "no release: there is no manifest.json")
}

func TestTheManualHasEveryFlag(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	require.Equal(t, exitDone, s.play("--manual"))
	page := s.out.String()
	assert.True(t, strings.HasPrefix(page, `.TH BMOE\-CLI 1 `))
	for _, p := range params.All() {
		assert.Contains(t, page, escaped(p.Spelling()))
	}
	for line := range strings.Lines(page) {
		request, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if strings.HasPrefix(request, ".") {
			assert.Contains(t, []string{".TH", ".SH", ".PP", ".TP", ".B", ".br"}, request)
		}
	}
	assert.Equal(t, `\&.gguf`, escaped(".gguf"))
	assert.Equal(t, `C:\ex\-y`, escaped(`C:\x-y`))
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		s := newStage(t)
		require.Equal(t, exitDone, s.play("--completion "+shell))
		assert.Contains(t, s.out.String(), "__complete", shell)
		assert.Contains(t, s.out.String(), "bmoe-cli", shell)
	}
	s := newStage(t)
	require.Equal(t, exitInput, s.play("--completion tcsh"))
	assert.Contains(t, s.err.String(), "--completion")

	for typed, want := range map[string][]string{
		"-m model.gguf --cache-ty":   {"--cache-type-k\t", "--cache-type-v\t"},
		"-m model.gguf --no-overl":   {":4"},
		"-m model.gguf -ctk ":        {"q8_0\n", "bf16\n", ":4"},
		"--dense-weights ":           {"anon\n", "pinned\n", ":4"},
		"--moe-stream --model ":      {"gguf\n", ":8"},
		"--moe-stream --prompt ":     {":4"},
		"--file ":                    {":0"},
		"--nonsense-that-is-no-flag": {":"},
	} {
		s := newStage(t)
		s.main(t.Context(), append([]string{"__complete"}, strings.Split(typed, " ")...))
		for _, w := range want {
			assert.Contains(t, s.out.String(), w, typed)
		}
	}
}
