package code

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSuitesAreSplitByWhatIsInside(t *testing.T) {
	t.Parallel()
	s := split([]string{
		"example.org/a.test=fmt,example.org/a",
		"github.com/bmoe/bmoe/core/llama.test=fmt,github.com/bmoe/bmoe/core/llama [github.com/bmoe/bmoe/core/llama.test]",
		"github.com/bmoe/bmoe/core/engine.test=fmt,github.com/bmoe/bmoe/core/llama",
		"github.com/bmoe/bmoe/ci/llama.test=fmt,github.com/bmoe/bmoe/ci/llama",
		"github.com/bmoe/bmoe/tests/safe.test=fmt,github.com/bmoe/bmoe/platform/process",
		"github.com/bmoe/bmoe/tests/synth.test=fmt,github.com/bmoe/bmoe/tests/synth",
		"github.com/bmoe/bmoe/platform/process.test=fmt,github.com/bmoe/bmoe/platform/process",
		"github.com/bmoe/bmoe/cmd/bmoe-cli=github.com/bmoe/bmoe/core/llama",
	})
	assert.Equal(t, []string{"example.org/a", "github.com/bmoe/bmoe/ci/llama", "github.com/bmoe/bmoe/tests/synth", "github.com/bmoe/bmoe/platform/process"}, s.Go)
	assert.Equal(t, []string{"github.com/bmoe/bmoe/core/llama", "github.com/bmoe/bmoe/core/engine", "github.com/bmoe/bmoe/tests/safe"}, s.Native)
}

// A package that is in neither suite would never be tested.
func TestEveryPackageWithTestsIsInASuite(t *testing.T) {
	t.Parallel()
	repo := Repo{Root: filepath.Join("..", "..")}
	s, err := repo.Suites(t.Context())
	require.NoError(t, err)
	all, err := repo.lines(t.Context(), nil, "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", "./...")
	require.NoError(t, err)
	require.Contains(t, all, "github.com/bmoe/bmoe/ci/code")
	assert.ElementsMatch(t, all, append(s.Go, s.Native...))
}

func TestFormattedNamesTheFiles(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	write("good.go", "package a\n")
	write("build/generated.go", "package   b\n")
	write("llama.cpp/source/x.go", "package   c\n")
	require.NoError(t, Repo{Root: root}.formatted())

	write("sub/bad.go", "package   d\n")
	require.ErrorContains(t, Repo{Root: root}.formatted(), filepath.Join("sub", "bad.go"))
	write("sub/bad.go", "not go")
	require.ErrorContains(t, Repo{Root: root}.formatted(), "bad.go")
}

func TestQuoteKeepsFoldersWithSpacesWhole(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `/a/beside "/b c/bin"`, quote("/a/beside", "/b c/bin"))
}

func TestPackagesThatNeedNoC(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"a", "d"}, pureGo([]string{
		"a=fmt", "a.test=fmt,testing,a [a.test],runtime/cgo", "a=fmt,testing",
		"b=fmt,github.com/ebitengine/purego",
		"c=fmt", "c=fmt,c [c.test],github.com/ebitengine/purego",
		"d=", "program=runtime/cgo",
	}))
}
