// Package module builds compute modules for tests, out of C, and puts them beside a copy of the program that tests.
//
// What a module does is in the test's own C file.
package module

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/platform/dynlib"
	"github.com/bmoe/bmoe/platform/process"
)

// Beside copies this program, or another one of its folder if named, and the libraries beside it, into a folder of the
// test's, and gives the copy's path.
func Beside(t testing.TB, program string) string {
	t.Helper()
	exe, err := process.Executable()
	require.NoError(t, err)
	if program == "" {
		program = filepath.Base(exe)
	}
	from, to := filepath.Dir(exe), t.TempDir()
	entries, err := os.ReadDir(from)
	require.NoError(t, err)
	for _, e := range entries {
		if strings.Contains(e.Name(), dynlib.Suffix) || e.Name() == program {
			data, err := os.ReadFile(filepath.Join(from, e.Name()))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(to, e.Name()), data, 0o755))
		}
	}
	return filepath.Join(to, program)
}

// Compile makes a compute module called name ("card") of a C file, beside a program that Beside copied, and gives the name of
// its file.
func Compile(t testing.TB, program, source, name string, flags ...string) string {
	t.Helper()
	exe, err := process.Executable()
	require.NoError(t, err)
	cc := "cc"
	for _, name := range []string{os.Getenv("CC"), "cc", "gcc", "clang"} {
		if found, err := exec.LookPath(name); err == nil {
			cc = found
			break
		}
	}
	dir, file := filepath.Dir(program), dynlib.Name("ggml-"+name)
	args := []string{"-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
		"-DGGML_BACKEND_SHARED", "-DGGML_BACKEND_BUILD", "-isystem", filepath.Join(filepath.Dir(filepath.Dir(exe)), "include"),
		"-o", filepath.Join(dir, file), source}
	args = append(args, flags...)
	out, err := exec.CommandContext(t.Context(), cc, args...).CombinedOutput()
	require.NoError(t, err, "this test needs a C compiler: %s", out)
	return file
}
