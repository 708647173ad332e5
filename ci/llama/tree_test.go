package llama

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// git runs git in dir, deaf to the settings of whoever runs the test.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.org", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.org")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, dir, name, content string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), mode))
}

// repository makes a clone with the shapes that order and hash differently: names that sort around a folder's, a program, a link,
// an empty file, bytes that are no text, and a tracked file that an ignore rule matches. It returns git's own id for it.
func repository(t *testing.T) (dir, tree string) {
	dir = t.TempDir()
	write(t, dir, "a/deep/er/file.txt", "one\n", 0o644)
	write(t, dir, "a-b", "sorts before a/\n", 0o644)
	write(t, dir, "a.c", "sorts before a/ too\n", 0o644)
	write(t, dir, "a0", "sorts after a/\n", 0o644)
	write(t, dir, "run.sh", "#!/bin/sh\n", 0o755)
	write(t, dir, "empty", "", 0o644)
	write(t, dir, "models/vocab.bin", "\x00\x01\xff\r\n", 0o644)
	write(t, dir, "zürich.txt", "not ascii\n", 0o644)
	write(t, dir, ".gitignore", "*.bin\n/build*\n", 0o644)
	require.NoError(t, os.Symlink("a/deep", filepath.Join(dir, "link")))
	git(t, dir, "init", "--quiet")
	git(t, dir, "add", "--force", "--all")
	git(t, dir, "commit", "--quiet", "--message", "fixture")
	return dir, git(t, dir, "rev-parse", "HEAD^{tree}")
}

func TestTreeIDIsGits(t *testing.T) {
	t.Parallel()
	dir, want := repository(t)
	got, err := TreeID(t.Context(), dir)
	require.NoError(t, err)
	assert.Equal(t, want, got, "of the clone")

	require.NoError(t, os.RemoveAll(filepath.Join(dir, ".git")))
	got, err = TreeID(t.Context(), dir)
	require.NoError(t, err)
	assert.Equal(t, want, got, "of the same files without git's")
}

func TestACheckSeesWhatIsOnDisk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(t *testing.T, dir string)
	}{
		{"a tracked file changed and not committed", func(t *testing.T, dir string) { write(t, dir, "a0", "x\n", 0o644) }},
		{"a changed file staged", func(t *testing.T, dir string) {
			write(t, dir, "a0", "x\n", 0o644)
			git(t, dir, "add", "a0")
		}},
		{"another commit checked out", func(t *testing.T, dir string) {
			write(t, dir, "new", "x\n", 0o644)
			git(t, dir, "add", "new")
			git(t, dir, "commit", "--quiet", "--message", "another")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, want := repository(t)
			require.NoError(t, Check(t.Context(), dir, want))
			c.change(t, dir)
			err := Check(t.Context(), dir, want)
			require.ErrorContains(t, err, "is not the pinned one")
			assert.ErrorContains(t, err, dir)
			assert.ErrorContains(t, err, want)
		})
	}
}

func TestACloneMayHoldFilesThatGitDoesNotTrack(t *testing.T) {
	t.Parallel()
	dir, want := repository(t)
	write(t, dir, "build/libllama.so", "built", 0o755)
	require.NoError(t, Check(t.Context(), dir, want))

	require.NoError(t, os.RemoveAll(filepath.Join(dir, ".git")))
	require.Error(t, Check(t.Context(), dir, want), "a plain folder has no such list: everything in it counts")
}

func TestWhatCannotBeCheckedSaysWhy(t *testing.T) {
	t.Parallel()
	err := Check(t.Context(), filepath.Join(t.TempDir(), "absent"), strings.Repeat("0", 40))
	require.ErrorContains(t, err, "absent")

	dir, want := repository(t)
	require.NoError(t, os.Remove(filepath.Join(dir, "a0")))
	require.ErrorContains(t, Check(t.Context(), dir, want), "a0")

	require.ErrorContains(t, Check(t.Context(), t.TempDir(), want), "is empty")
}

func TestPin(t *testing.T) {
	t.Parallel()
	p, err := ReadPin(filepath.Join("..", ".."))
	require.NoError(t, err, "the repository's own")
	assert.Regexp(t, `^v\d`, p.Tag)

	for name, c := range map[string]struct{ json, want string }{
		"no json":    {`{`, "pin.json"},
		"short tree": {`{"tag":"v1","tree":"abc","npm":"p","bundle":"b","repository":"r"}`, `"abc"`},
		"no tag":     {`{"tree":"` + strings.Repeat("a", 40) + `","npm":"p","bundle":"b","repository":"r"}`, "tag"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			write(t, root, "llama.cpp/pin.json", c.json, 0o644)
			_, err := ReadPin(root)
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err = ReadPin(t.TempDir())
	require.ErrorIs(t, err, os.ErrNotExist)
}
