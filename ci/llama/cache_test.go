package llama

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/backends"
)

func TestTheKeyIsOfEverythingThatDecidesTheBytes(t *testing.T) {
	t.Parallel()
	pin := Pin{Tag: "v1", Tree: strings.Repeat("a", 40)}
	tc := Toolchain{C: "cc 1", CXX: "c++ 1", Machine: "x86_64", Flags: `"" "" ""`, cmake: "/one/cmake"}
	m := backends.Module{Name: "cpu-x", Target: "ggml-cpu-x", Options: []string{"-DA=ON"}}
	key := newRecipe(pin, tc, m).key()

	elsewhere := tc
	elsewhere.cmake = "/other/cmake"
	assert.Equal(t, key, newRecipe(pin, elsewhere, m).key(), "where a program lies does not matter")

	others := map[string]string{"itself": key}
	add := func(name string, change func(*Pin, *Toolchain, *backends.Module)) {
		p, c, mod := pin, tc, m
		change(&p, &c, &mod)
		others[name] = newRecipe(p, c, mod).key()
	}
	add("tree", func(p *Pin, _ *Toolchain, _ *backends.Module) { p.Tree = strings.Repeat("b", 40) })
	add("c", func(_ *Pin, c *Toolchain, _ *backends.Module) { c.C = "cc 2" })
	add("c++", func(_ *Pin, c *Toolchain, _ *backends.Module) { c.CXX = "c++ 2" })
	add("machine", func(_ *Pin, c *Toolchain, _ *backends.Module) { c.Machine = "aarch64" })
	add("flags", func(_ *Pin, c *Toolchain, _ *backends.Module) { c.Flags = `"-O2" "" ""` })
	add("target", func(_ *Pin, _ *Toolchain, m *backends.Module) { m.Target = "ggml-cpu-y" })
	add("options", func(_ *Pin, _ *Toolchain, m *backends.Module) { m.Options = []string{"-DA=OFF"} })
	for name, files := range map[string]fstest.MapFS{
		"sources": {"a.c": {Data: []byte("1")}}, "another source": {"b.c": {Data: []byte("1")}}, "another text": {"a.c": {Data: []byte("2")}},
	} {
		add(name, func(_ *Pin, _ *Toolchain, m *backends.Module) { m.Own = files })
	}
	distinct := map[string]bool{}
	for _, k := range others {
		distinct[k] = true
	}
	assert.Len(t, distinct, len(others), "%v", others)
}

func TestModulesWithEqualOptionsShareABuild(t *testing.T) {
	t.Parallel()
	a := backends.Module{Name: "a", Options: []string{"-DX=ON"}}
	b := backends.Module{Name: "b", Options: []string{"-DY=ON"}}
	c := backends.Module{Name: "c", Options: []string{"-DX=ON"}}
	own := backends.Module{Name: "own", Own: fstest.MapFS{}}
	none := backends.Module{Name: "none"}
	assert.Equal(t, [][]backends.Module{{a, c}, {b}, {own}, {none}}, alike([]backends.Module{a, b, own, c, none}))
}

func TestBuildsTakeTurns(t *testing.T) {
	t.Parallel()
	cache := filepath.Join(t.TempDir(), "not", "there", "yet")
	waits := make(chan struct{})
	second := make(chan error, 1)
	order := make(chan string, 2) // a file lock is no lock in the race detector's eyes
	err := locked(t.Context(), cache, func() { t.Error("nobody to wait for") }, func() error {
		go func() {
			second <- locked(t.Context(), cache, func() { close(waits) }, func() error {
				order <- "second"
				return errors.New("its own")
			})
		}()
		<-waits // the second is waiting, so it has not run
		order <- "first"
		return nil
	})
	require.NoError(t, err)
	require.EqualError(t, <-second, "its own")
	assert.Equal(t, []string{"first", "second"}, []string{<-order, <-order})
}

func TestWaitingForABuildCanBeGivenUp(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	require.NoError(t, locked(t.Context(), cache, nil, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err := locked(ctx, cache, cancel, func() error { return errors.New("ran beside the other") })
		assert.ErrorIs(t, err, context.Canceled)
		return nil
	}))
}

func TestInstallReplacesWhatDiffersAndLeavesTheRest(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	write(t, from, "bin/libllama.so", "new", 0o755)
	write(t, from, "bin/libggml.so", "same", 0o755)
	write(t, to, "bin/libllama.so", "old", 0o755)
	write(t, to, "bin/libggml.so", "same", 0o755)
	write(t, to, "bin/libggml-vulkan.so", "somebody's", 0o755)
	open, err := os.Open(filepath.Join(to, "bin", "libllama.so"))
	require.NoError(t, err)
	defer open.Close()
	untouched, err := os.Stat(filepath.Join(to, "bin", "libggml.so"))
	require.NoError(t, err)

	require.NoError(t, Install([]string{from}, to))

	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(to, "bin", name))
		require.NoError(t, err)
		return string(data)
	}
	assert.Equal(t, "new", read("libllama.so"))
	assert.Equal(t, "somebody's", read("libggml-vulkan.so"))
	after, err := os.Stat(filepath.Join(to, "bin", "libggml.so"))
	require.NoError(t, err)
	assert.True(t, os.SameFile(untouched, after), "a file that is right is not written again")
	held := make([]byte, 3)
	_, err = open.ReadAt(held, 0)
	require.NoError(t, err)
	assert.Equal(t, "old", string(held), "who had it open keeps it")
	left, err := os.ReadDir(filepath.Join(to, "bin"))
	require.NoError(t, err)
	assert.Len(t, left, 3)
}

func TestTheSourceOfSomebodysOwnIsCheckedToo(t *testing.T) {
	dir, tree := repository(t)
	t.Setenv(SourceVariable, dir)
	got, err := Source(t.Context(), t.TempDir(), Pin{Tag: "v1", Tree: tree})
	require.NoError(t, err)
	assert.Equal(t, dir, got)

	_, err = Source(t.Context(), t.TempDir(), Pin{Tag: "v1", Tree: strings.Repeat("0", 40)})
	require.ErrorContains(t, err, SourceVariable)
	require.ErrorContains(t, err, "is not the pinned one")
}

func TestTheSourceIsFetchedFromGitAtTheTagAndChecked(t *testing.T) {
	t.Setenv(SourceVariable, "")
	upstream, tree := repository(t)
	git(t, upstream, "tag", "v1")
	write(t, upstream, "later", "not in the release\n", 0o644)
	git(t, upstream, "add", "later")
	git(t, upstream, "commit", "--quiet", "--message", "later")

	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "llama.cpp"), 0o755))
	pin := Pin{Tag: "v1", Tree: tree, Repository: "file://" + filepath.ToSlash(upstream)}
	dir, err := Source(t.Context(), root, pin)
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(dir, "later"))
	again, err := Source(t.Context(), root, Pin{Tag: "v1", Tree: tree, Repository: "file:///absent"})
	require.NoError(t, err, "what is there is not fetched again")
	assert.Equal(t, dir, again)

	write(t, dir, "a0", "changed\n", 0o644)
	_, err = Source(t.Context(), root, pin)
	require.ErrorContains(t, err, "remove that folder")

	other := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(other, "llama.cpp"), 0o755))
	pin.Tree = strings.Repeat("0", 40)
	_, err = Source(t.Context(), other, pin)
	require.ErrorContains(t, err, "is not the pinned one")
	require.NoDirExists(t, filepath.Join(other, "llama.cpp", "source"), "a wrong one is not kept")
}

func TestForgettingLeavesWhatIsNotOurs(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	write(t, cache, "llama.cpp/v1/base-1/bin/libllama.so", "built", 0o755)
	write(t, cache, "building-1/build.log", "under way", 0o644)
	write(t, cache, "build.lock", "", 0o644)
	write(t, cache, "another/program", "kept", 0o644)
	require.NoError(t, forget(cache))
	left, err := os.ReadDir(cache)
	require.NoError(t, err)
	require.Len(t, left, 1)
	assert.Equal(t, "another", left[0].Name())
}
