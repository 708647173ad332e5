//go:build unix

package safe

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/platform/dynlib"
)

// install puts the program and links to the libraries beside it into a folder of their own.
func install(t *testing.T, libraries bool) (dir, program string) {
	t.Helper()
	dir = t.TempDir()
	program = copied(t, cli, filepath.Join(dir, filepath.Base(cli)), -1)
	require.NoError(t, os.Chmod(program, 0o755))
	if !libraries {
		return dir, program
	}
	for _, path := range libs(t, filepath.Dir(cli)) {
		require.NoError(t, os.Symlink(path, filepath.Join(dir, filepath.Base(path))))
	}
	return dir, program
}

func libs(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var paths []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), dynlib.Prefix) && strings.Contains(e.Name(), dynlib.Suffix) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	require.NotEmpty(t, paths)
	return paths
}

func TestProgramWithoutItsLibraries(t *testing.T) {
	t.Parallel()
	m := model(t, moe)[0]
	at := func(program string, extra ...string) outcome {
		c := command("-m", m, "-p", "a", "-n", "1", "-c", "64")
		c.Path, c.Dir = program, t.TempDir()
		c.Env = append(c.Env, extra...)
		return wait(t, c)
	}
	dir, program := install(t, false)
	at(program).refused(t, failed, "the llama.cpp libraries are missing", dir)
	// What lies elsewhere is not taken.
	from := filepath.Dir(cli)
	at(program, "LD_LIBRARY_PATH="+from, "DYLD_LIBRARY_PATH="+from, "GGML_BACKEND_PATH="+from).refused(t, failed, "the llama.cpp libraries are missing", dir)
	c := command("-m", m, "-p", "a")
	c.Path, c.Dir = program, from
	wait(t, c).refused(t, failed, "the llama.cpp libraries are missing", dir)
	c = command("--version")
	c.Path = program
	o := wait(t, c)
	o.refused(t, failed, "the llama.cpp libraries are missing", dir)
	assert.True(t, strings.HasPrefix(o.stdout, "bmoe-cli "), "its own version it knows")

	_, program = install(t, true)
	at(program).orderly(t, done)
	link := filepath.Join(t.TempDir(), "a-link")
	require.NoError(t, os.Symlink(program, link))
	at(link).orderly(t, done) // the libraries are beside what it points to
}

// What lies in the working directory is taken for neither a module nor one of the system's libraries, whatever the environment says.
func TestLibrariesPlantedInTheWorkingDirectory(t *testing.T) {
	t.Parallel()
	m := model(t, moe)[0]
	planted := t.TempDir()
	for _, name := range []string{"libstdc++.so.6", "libgcc_s.so.1", "libm.so.6", dynlib.Name("ggml-planted"), dynlib.Name("ggml-cpu-planted"), dynlib.Name("ggml-base") + ".0"} {
		require.NoError(t, os.WriteFile(filepath.Join(planted, name), []byte("not a library"), 0o755))
	}
	c := command("-m", m, "-p", "a", "-n", "1", "-c", "64", "--log-level", "warn")
	c.Dir = planted
	c.Env = append(c.Env, "PATH="+planted+":"+os.Getenv("PATH"), "GGML_BACKEND_PATH="+filepath.Join(planted, dynlib.Name("ggml-planted")), "BMOE_THREADS=1")
	o := wait(t, c)
	o.orderly(t, done)
	assert.NotContains(t, o.stderr, "planted", "nobody looked at it")
}

// A library that is damaged, or of another release, is named.
func TestDamagedLibraries(t *testing.T) {
	t.Parallel()
	m := model(t, moe)[0]
	llama := dynlib.Name("llama")
	whole, err := os.ReadFile(filepath.Join(filepath.Dir(cli), llama))
	require.NoError(t, err)
	ggml, err := os.ReadFile(filepath.Join(filepath.Dir(cli), dynlib.Name("ggml")))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"empty":   {nil, "does not load"},
		"text":    {[]byte("not a library"), "does not load"},
		"cut":     {whole[:len(whole)/2], "does not load"},
		"another": {ggml, "is not the llama.cpp release this program was built for"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, program := install(t, true)
			require.NoError(t, os.Remove(filepath.Join(dir, llama)))
			require.NoError(t, os.WriteFile(filepath.Join(dir, llama), c.content, 0o755))
			cmd := command("-m", m, "-p", "a", "-n", "1")
			cmd.Path = program
			wait(t, cmd).refused(t, failed, llama, c.want)
		})
	}
	dir, program := install(t, true)
	for _, path := range libs(t, dir) {
		if strings.HasPrefix(filepath.Base(path), dynlib.Prefix+"ggml-cpu") {
			require.NoError(t, os.Remove(path))
		}
	}
	cmd := command("-m", m, "-p", "a", "-n", "1")
	cmd.Path = program
	wait(t, cmd).refused(t, failed, "no CPU module", dir)
}
