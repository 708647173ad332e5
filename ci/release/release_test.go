package release

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/ci/code"
	"github.com/bmoe/bmoe/ci/release/bill"
	"github.com/bmoe/bmoe/core/manifest"
)

// here is this machine's system.
func here() *part {
	return &part{system: system{Platform: code.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH}}}
}

// archive makes one of a folder with all that an archive holds, sealed, and then changed.
func archive(t *testing.T, change func(dir string)) string {
	t.Helper()
	const top = "bmoe-1.2.3-test"
	dir := filepath.Join(t.TempDir(), top)
	for _, name := range append([]string{"bmoe-cli"}, held...) {
		put(t, dir, name, "of "+name)
	}
	files, err := manifest.Of(dir)
	require.NoError(t, err)
	require.NoError(t, manifest.Manifest{Version: "1.2.3", System: here().String(), Llama: manifest.Llama{Release: "v0.5.0", Tree: "fd57"},
		Modules: []manifest.Module{{Name: "base"}, {Name: "cpu-x64"}}, LeftOut: []manifest.LeftOut{{Name: "cuda", Why: "no nvcc"}}, Files: files}.Write(dir))
	if change != nil {
		change(dir)
	}
	path := filepath.Join(t.TempDir(), top+".tar.gz")
	f, err := os.Create(path)
	require.NoError(t, err)
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	require.NoError(t, w.AddFS(os.DirFS(filepath.Dir(dir))))
	require.NoError(t, w.Close())
	require.NoError(t, z.Close())
	require.NoError(t, f.Close())
	return path
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o755))
}

func TestAWholeArchivePasses(t *testing.T) {
	t.Parallel()
	p := here()
	require.NoError(t, p.look(archive(t, nil)))
	assert.Equal(t, []string{"cpu-x64"}, p.modules)
	assert.Equal(t, []string{"cuda: no nvcc"}, p.leftOut)
}

func TestEachFaultOfAnArchiveIsNamed(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Log("the faults of libraries are those of Linux, where this does not run")
		return
	}
	self, err := os.Executable()
	require.NoError(t, err)
	binary, err := os.ReadFile(self)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		change func(dir string)
		want   []string
	}{
		"a file is missing": {func(dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "LICENSE"))) },
			[]string{"LICENSE is not in it", "the manifest has LICENSE, which is not there"}},
		"a file is changed": {func(dir string) { put(t, dir, "README.md", "other") }, []string{"README.md is not what the manifest says"}},
		"a file is added":   {func(dir string) { put(t, dir, "notes", "") }, []string{"notes is not in the manifest"}},
		"the program can't be run": {func(dir string) { require.NoError(t, os.Chmod(filepath.Join(dir, "bmoe-cli"), 0o644)) },
			[]string{"bmoe-cli can't be run"}},
		"another system's": {func(dir string) {
			m, err := manifest.Read(dir)
			require.NoError(t, err)
			m.System = "plan9/mips"
			require.NoError(t, m.Write(dir))
		}, []string{`for "plan9/mips"`}},
		"no manifest":     {func(dir string) { require.NoError(t, os.Remove(filepath.Join(dir, manifest.Name))) }, []string{"manifest.json is not in it"}},
		"a half manifest": {func(dir string) { put(t, dir, manifest.Name, "{") }, []string{"manifest.json: unexpected end"}},
		"a strange library": {func(dir string) {
			put(t, dir, "liba.so", strings.NewReplacer("libc.so.6\x00", "libq.so.6\x00").Replace(string(binary)))
		},
			[]string{"liba.so: it needs libq.so.6, which is neither in the archive nor the system's own"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "a strange library" && !strings.Contains(string(binary), "libc.so.6\x00") {
				t.Log("this test's program needs no C library, so it cannot play one that needs a strange one")
				return
			}
			err := here().look(archive(t, c.change))
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestOlder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{{"2.9", "2.36", true}, {"2.36", "2.36", false}, {"2.36", "2.4", false}, {"2.36", "2.36.1", true}, {"", "2.2.5", true}, {"2.2.5", "2.34", true}} {
		assert.Equal(t, c.want, older(c.a, c.b), "%s before %s", c.a, c.b)
	}
}

func TestTheRecipeHasWhatTheSystemsTake(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	r := &Release{Root: root}
	of := func(names ...string) string {
		var parts []*part
		for _, n := range names {
			goos, arch, _ := strings.Cut(n, "/")
			parts = append(parts, &part{system: system{Platform: code.Platform{OS: goos, Arch: arch}}})
		}
		out, err := r.recipe(parts)
		require.NoError(t, err)
		assert.NotContains(t, string(out), "[[")
		assert.Contains(t, string(out), "./cmd/bmoe-cli")
		return string(out)
	}
	all := of("linux/amd64", "linux/arm64", "windows/amd64")
	assert.Contains(t, all, "targets: [linux_amd64, linux_arm64, windows_amd64]")
	for _, section := range []string{"nfpms:", "homebrew_casks:", "scoops:", "winget:"} {
		assert.Contains(t, all, section)
	}
	windows := of("windows/amd64")
	assert.NotContains(t, windows, "nfpms:")
	assert.NotContains(t, windows, "homebrew_casks:")
	mac := of("darwin/arm64")
	assert.Contains(t, mac, "homebrew_casks:")
	assert.NotContains(t, mac, "scoops:")
}

func TestEverySystemHasItsPageAndItsOwnLibraries(t *testing.T) {
	t.Parallel()
	for _, s := range systems {
		assert.FileExists(t, filepath.Join("..", "..", "packaging", "install", s.OS+".txt"))
		assert.NotEmpty(t, outside[s.OS], s.OS)
	}
}

func TestTheBillOfMaterials(t *testing.T) {
	t.Parallel()
	built := filepath.Join(t.TempDir(), "bmoe-cli")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", built, "github.com/bmoe/bmoe/cmd/bmoe-cli").CombinedOutput()
	require.NoError(t, err, "%s", out)
	program, err := os.ReadFile(built)
	require.NoError(t, err)
	a := archive(t, func(dir string) { put(t, dir, "bmoe-cli", string(program)) })
	path := filepath.Join(t.TempDir(), "bill.json")
	require.NoError(t, bill.Write(a, path))
	first, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, bill.Write(a, path))
	again, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, first, again, "the same archive gives the same bill")

	var d struct {
		Format     string `json:"bomFormat"`
		Components []struct{ Name, Version, Type string }
	}
	require.NoError(t, json.Unmarshal(first, &d))
	assert.Equal(t, "CycloneDX", d.Format)
	versions := map[string]string{}
	for _, c := range d.Components {
		versions[c.Name] = c.Version
	}
	assert.Equal(t, "v0.5.0", versions["llama.cpp"])
	assert.NotEmpty(t, versions["github.com/spf13/cobra"], "a module inside the program")
	assert.Equal(t, strings.TrimPrefix(runtime.Version(), "go"), versions["stdlib"])
	assert.Contains(t, versions, "README.md")

	require.Error(t, bill.Write(archive(t, func(dir string) { require.NoError(t, os.Remove(filepath.Join(dir, manifest.Name))) }), path))
}
