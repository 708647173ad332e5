package llama

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/platform/dynlib"
	"github.com/bmoe/bmoe/platform/process"
	"github.com/bmoe/bmoe/tests/synth"
)

// childVariable set makes this test program load the libraries beside it, tell what came of it, and end.
const childVariable = "BMOE_LLAMA_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	if err := json.NewEncoder(os.Stdout).Encode(load()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// outcome is what a program finds that loads the libraries and every module beside it.
type outcome struct {
	Error      string // of Load; the rest is empty then
	CPU        Module
	Devices    []Listed
	Registries int      // how many backends ggml knows
	LeftOut    []string // by LoadAccelerator
	log        string   // standard error
}

func load() (o outcome) {
	exe, err := process.Executable()
	if err != nil {
		return outcome{Error: err.Error()}
	}
	l, err := Load(filepath.Dir(exe))
	if err != nil {
		return outcome{Error: err.Error()}
	}
	accelerators, err := l.Accelerators()
	if err != nil {
		return outcome{Error: err.Error()}
	}
	for _, m := range accelerators {
		if _, err := l.LoadAccelerator(m); err != nil {
			o.LeftOut = append(o.LeftOut, err.Error())
		}
	}
	o.CPU, o.Devices, o.Registries = l.CPU, l.Devices(), registries(l)
	return o
}

// registries is how many backends are registered.
func registries(l *Library) int {
	h, err := dynlib.Open(filepath.Join(l.Dir, dynlib.Name("ggml"))) // open already: the same handle
	if err != nil {
		return -1
	}
	count, err := dynlib.Symbol(h, "ggml_backend_reg_count")
	if err != nil {
		return -1
	}
	n, _, _ := purego.SyscallN(count)
	return int(n)
}

// beside is this program's folder, where the libraries must be.
func beside(t *testing.T) string {
	t.Helper()
	exe, err := process.Executable()
	require.NoError(t, err)
	dir := filepath.Dir(exe)
	if _, err := os.Stat(filepath.Join(dir, dynlib.Name("llama"))); err != nil {
		t.Fatal("the llama.cpp libraries are not beside this test program: run `go tool mage test`, which builds them and runs it there")
	}
	return dir
}

// library opens the libraries once for all tests of this process.
func library(t *testing.T) *Library {
	t.Helper()
	l, err := Load(beside(t))
	require.NoError(t, err)
	return l
}

// headers is the folder of the headers that the libraries beside this program were built from.
func headers(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(filepath.Dir(beside(t)), "include")
	if _, err := os.Stat(filepath.Join(dir, "llama.h")); err != nil {
		t.Fatal("the headers that the llama.cpp libraries were built from are not in ../include: run `go tool mage test`")
	}
	return dir
}

// compile makes a program or library of a C file with the pinned headers. Optimized, it drops functions that these define
// and nothing uses, which want the libraries.
func compile(t *testing.T, source, output string, flags ...string) {
	t.Helper()
	names := []string{"cc", "gcc", "clang"}
	if cc := os.Getenv("CC"); cc != "" {
		names = []string{cc}
	}
	for _, name := range names {
		cc, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		args := append([]string{"-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-isystem", headers(t),
			"-I", filepath.Join("..", "..", "backends", "common"), "-o", output}, flags...)
		out, err := exec.CommandContext(t.Context(), cc, append(args, source)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	t.Fatalf("this test needs a C compiler: none of %s is there", strings.Join(names, ", "))
}

// module compiles testdata/module.c to path. It says in the file at marker that it was loaded.
func module(t *testing.T, path, marker string, defines ...string) {
	t.Helper()
	flags := []string{"-shared", "-fPIC", "-DGGML_BACKEND_SHARED", "-DGGML_BACKEND_BUILD", "-DMARKER=" + fmt.Sprintf("%q", filepath.ToSlash(marker))}
	for _, d := range defines {
		flags = append(flags, "-D"+d)
	}
	compile(t, filepath.Join("testdata", "module.c"), path, flags...)
}

// install copies this program and the libraries beside it to a folder of their own, with those modules that pick names.
func install(t *testing.T, pick func(Module) bool) (dir, program string) {
	t.Helper()
	from := beside(t)
	all, err := modules(from)
	require.NoError(t, err)
	skip := map[string]bool{}
	for _, m := range all {
		skip[filepath.Base(m.Path)] = !pick(m)
	}
	dir, err = filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	entries, err := os.ReadDir(from)
	require.NoError(t, err)
	for _, e := range entries {
		if strings.Contains(e.Name(), dynlib.Suffix) && !skip[e.Name()] {
			duplicate(t, filepath.Join(from, e.Name()), filepath.Join(dir, e.Name()))
		}
	}
	exe, err := process.Executable()
	require.NoError(t, err)
	program = filepath.Join(dir, filepath.Base(exe))
	duplicate(t, exe, program)
	return dir, program
}

func duplicate(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, b, 0o755))
}

// start runs an installed program in the folder cwd with more environment.
func start(t *testing.T, program, cwd string, env ...string) (o outcome) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Dir = cwd
	cmd.Env = append(append(os.Environ(), childVariable+"=1"), env...)
	var log strings.Builder
	cmd.Stderr = &log
	out, err := cmd.Output()
	require.NoError(t, err, "%s%s", out, log.String())
	require.NoError(t, json.Unmarshal(out, &o), "%s", out)
	o.log = log.String()
	return o
}

// small writes a model of 20 MB and gives its path.
func small(t *testing.T) string {
	t.Helper()
	spec, err := synth.Named("qwen3moe-20m")
	require.NoError(t, err)
	files, err := synth.Write(t.Context(), filepath.Join(t.TempDir(), "small.gguf"), spec, nil)
	require.NoError(t, err)
	return files[0]
}

// open loads the 20 MB model.
func open(t *testing.T, o ModelOptions) *Model {
	t.Helper()
	m, err := library(t).LoadModel(t.Context(), small(t), o)
	require.NoError(t, err)
	t.Cleanup(m.Free)
	return m
}
