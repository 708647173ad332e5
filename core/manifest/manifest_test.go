package manifest

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// folder is a release of three files, and its manifest as read back.
func folder(t *testing.T) (dir string, m Manifest) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "man"), 0o755))
	for name, content := range map[string]string{"program": "runs", "libllama.so": "computes", "man/program.1": "tells"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(content), 0o644))
	}
	files, err := Of(dir)
	require.NoError(t, err)
	require.NoError(t, Manifest{Version: "1.2.3", System: "linux/amd64", Llama: Llama{"v0.5.0", "fd57"},
		LeftOut: []LeftOut{{"cuda", "nvcc is not there"}}, Files: files}.Write(dir))
	m, err = Read(dir)
	require.NoError(t, err)
	return dir, m
}

func TestWhatIsWrittenIsReadBackAndFoundWhole(t *testing.T) {
	t.Parallel()
	dir, m := folder(t)
	assert.Equal(t, "1.2.3", m.Version)
	assert.Equal(t, []LeftOut{{"cuda", "nvcc is not there"}}, m.LeftOut)
	var names []string
	for _, f := range m.Files {
		names = append(names, f.Name)
	}
	assert.Equal(t, []string{"libllama.so", "man/program.1", "program"}, names)
	found, err := m.Check(dir)
	require.NoError(t, err)
	assert.Equal(t, Found{}, found)
	assert.True(t, found.Whole())
}

func TestEachDifferenceIsNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(dir string) error
		want   Found
		whole  bool
	}{
		"a changed byte": {
			func(dir string) error {
				return os.WriteFile(filepath.Join(dir, "libllama.so"), []byte("c0mputes"), 0o644)
			},
			Found{Changed: []string{"libllama.so"}}, false},
		"one that grew": {
			func(dir string) error {
				return os.WriteFile(filepath.Join(dir, "man", "program.1"), []byte("tells more"), 0o644)
			},
			Found{Changed: []string{"man/program.1"}}, false},
		"a missing one": {
			func(dir string) error { return os.Remove(filepath.Join(dir, "libllama.so")) },
			Found{Missing: []string{"libllama.so"}}, false},
		"a link to nothing": {
			func(dir string) error {
				path := filepath.Join(dir, "libllama.so")
				if err := os.Remove(path); err != nil {
					return err
				}
				return os.Symlink("nowhere", path)
			},
			Found{Missing: []string{"libllama.so"}}, false},
		"one dropped in": {
			func(dir string) error { return os.WriteFile(filepath.Join(dir, "libggml-mine.so"), nil, 0o644) },
			Found{Extra: []string{"libggml-mine.so"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, m := folder(t)
			require.NoError(t, c.change(dir))
			found, err := m.Check(dir)
			require.NoError(t, err)
			assert.Equal(t, c.want, found)
			assert.Equal(t, c.whole, found.Whole())
		})
	}
}

// A folder moved to where there are no links has copies in their place, and is the same release.
func TestALinkCountsAsWhatItLeadsTo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "libggml.so"), []byte("ggml"), 0o644))
	require.NoError(t, os.Symlink("libggml.so", filepath.Join(dir, "libggml.so.0")))
	files, err := Of(dir)
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(dir, "libggml.so.0")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "libggml.so.0"), []byte("ggml"), 0o644))
	found, err := Manifest{Files: files}.Check(dir)
	require.NoError(t, err)
	assert.Equal(t, Found{}, found)
}

func TestWhatIsNoManifest(t *testing.T) {
	t.Parallel()
	_, err := Read(t.TempDir())
	require.ErrorIs(t, err, fs.ErrNotExist)
	for content, want := range map[string]string{
		"{":                                  "unexpected end",
		`{"files":[{"name":"../secret"}]}`:   "../secret",
		`{"files":[{"name":"/etc/passwd"}]}`: "/etc/passwd",
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, Name), []byte(content), 0o644))
		_, err := Read(dir)
		require.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, dir)
	}
}
