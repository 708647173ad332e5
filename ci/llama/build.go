package llama

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmoe/bmoe/backends"
	"github.com/bmoe/bmoe/ci/console"
)

// Build makes sure that the cache holds the base libraries, the one over common and these modules, and returns each one's
// folder there, the base's first. What is missing is built from the pinned source; when nothing is, the source is not even looked for.
func Build(ctx context.Context, root string, modules []backends.Module) ([]string, error) {
	tc, err := HostToolchain(ctx)
	if err != nil {
		return nil, err
	}
	return BuildWith(ctx, root, tc, modules)
}

// BuildWith is Build with a given toolchain.
func BuildWith(ctx context.Context, root string, tc Toolchain, modules []backends.Module) ([]string, error) {
	pin, err := ReadPin(root)
	if err != nil {
		return nil, err
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	all := append([]backends.Module{backends.Base, backends.Common}, modules...)
	var folders []string
	for _, m := range all {
		folders = append(folders, place(cache, pin, tc, m))
	}
	if len(absent(all, folders)) == 0 {
		return folders, nil
	}
	waiting := func() { console.Say("waiting for another build of llama.cpp to end") }
	err = locked(ctx, cache, waiting, func() error {
		missing := absent(all, folders) // looked up again: the other build may have made them
		if len(missing) == 0 {
			return nil
		}
		source, err := Source(ctx, root, pin)
		if err != nil {
			return err
		}
		for _, group := range alike(missing) {
			if err := buildGroup(ctx, source, cache, pin, tc, group); err != nil {
				return err
			}
		}
		return nil
	})
	return folders, err
}

// absent are the modules whose folder is not there. A folder that is there is whole: it was renamed into place.
func absent(modules []backends.Module, folders []string) []backends.Module {
	var missing []backends.Module
	for i, m := range modules {
		if _, err := os.Stat(folders[i]); err != nil {
			missing = append(missing, m)
		}
	}
	return missing
}

// alike groups modules that can share a build folder.
func alike(modules []backends.Module) [][]backends.Module {
	var groups [][]backends.Module
	for _, m := range modules {
		i := slices.IndexFunc(groups, func(g []backends.Module) bool {
			return g[0].Own == nil && m.Own == nil && slices.Equal(g[0].Options, m.Options)
		})
		if i < 0 {
			groups = append(groups, []backends.Module{m})
		} else {
			groups[i] = append(groups[i], m)
		}
	}
	return groups
}

// buildGroup builds modules in one temporary folder inside the cache and renames each finished one into its place.
func buildGroup(ctx context.Context, source, cache string, pin Pin, tc Toolchain, group []backends.Module) error {
	work, err := os.MkdirTemp(cache, "building-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	build := filepath.Join(work, "build")

	goos, _ := tc.System()
	compilers, err := tc.configured(work)
	if err != nil {
		return err
	}
	from, options := source, group[0].Configured(goos)
	if own := group[0].Own; own != nil {
		from = filepath.Join(work, "own")
		if err := os.CopyFS(from, own); err != nil {
			return err
		}
		options = against(goos, source, place(cache, pin, tc, backends.Base))
	}
	configure := slices.Concat([]string{"-S", from, "-B", build, "-G", "Ninja"}, compilers, options)
	var names, targets []string
	for _, m := range group {
		names, targets = append(names, m.Name), append(targets, m.Target)
	}
	label := fmt.Sprintf("building llama.cpp %s: %s", pin.Tag, strings.Join(names, ", "))
	env := tc.environment(source, build)
	console.Say("%s", label)
	if err := follow(ctx, env, filepath.Join(work, "configure.log"), nil, tc.cmake, configure...); err != nil {
		return fmt.Errorf("llama.cpp could not be configured: %w", err)
	}
	bar := console.Start("compiling", 1000, false)
	if err := follow(ctx, env, filepath.Join(work, "build.log"), bar, tc.ninja, append([]string{"-C", build}, targets...)...); err != nil {
		bar.Failed()
		return fmt.Errorf("llama.cpp (%s) could not be built: %w", strings.Join(names, ", "), err)
	}
	bar.Done()

	for _, m := range group {
		whole := filepath.Join(work, m.Name)
		if err := collect(source, build, whole, tc, m); err != nil {
			return err
		}
		folder := place(cache, pin, tc, m)
		if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
			return err
		}
		if err := os.Rename(whole, folder); err != nil {
			return err
		}
	}
	return nil
}

// against are the options of a build of our own sources: llama.cpp's source, and the libraries that were made of it.
func against(goos, source, base string) []string {
	var libraries []string
	for _, name := range slices.Backward(backends.BaseLibraries) { // each before what it needs
		libraries = append(libraries, filepath.Join(base, "bin", LibraryName(goos, name)))
	}
	return []string{"-DCMAKE_BUILD_TYPE=Release", "-DLLAMA=" + source, "-DLIBRARIES=" + strings.Join(libraries, ";")}
}

// follow runs a program, its output going to a log whose end is the error's text. Lines such as "[12/340] ..." move the bar.
func follow(ctx context.Context, env []string, log string, bar *console.Bar, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(env, "NINJA_STATUS=[%f/%t] ")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	file, err := os.Create(log)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := cmd.Start(); err != nil {
		return err
	}
	var last []string
	lines := bufio.NewScanner(io.TeeReader(out, file))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		last = append(last, lines.Text())
		if len(last) > 40 {
			last = last[1:]
		}
		var done, total int64
		if n, _ := fmt.Sscanf(lines.Text(), "[%d/%d]", &done, &total); n == 2 && bar != nil && total > 0 {
			bar.Set(done * 1000 / total)
		}
	}
	if err := errors.Join(lines.Err(), cmd.Wait()); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%s: %w; it ended with:\n%s", filepath.Base(program), err, strings.Join(last, "\n"))
	}
	return nil
}

// headers are the files of the source that our tests compile against, by their folder in the source.
var headers = []string{"include/*.h", "ggml/include/*.h", "ggml/src/ggml-backend-impl.h", "ggml/src/ggml-impl.h"}

// collect copies what a module's build made into the folder to: bin/ for what belongs beside the binary and, with the base,
// include/ for the headers it was built from and licenses/ for llama.cpp's.
func collect(source, build, to string, tc Toolchain, m backends.Module) error {
	goos, _ := tc.System()
	bin := filepath.Join(to, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	libraries := []string{m.Target}
	if m.Name == backends.Base.Name {
		libraries = backends.BaseLibraries
	}
	for _, name := range libraries {
		file := LibraryName(goos, name)
		// Opened through whatever links the build made: what is kept is a plain file.
		if err := copyFile(filepath.Join(build, "bin", file), filepath.Join(bin, file)); err != nil {
			return err
		}
	}
	if m.Own != nil {
		licenses := filepath.Join(to, "licenses", "json")
		if err := os.MkdirAll(licenses, 0o755); err != nil {
			return err
		}
		return copyFile(filepath.Join(source, "licenses", "LICENSE-jsonhpp"), filepath.Join(licenses, "LICENSE"))
	}
	if m.Name != backends.Base.Name {
		return nil
	}
	if err := errors.Join(tc.collectRuntime(bin), LinkNeeded(bin)); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(to, "include"), 0o755); err != nil {
		return err
	}
	for _, pattern := range headers {
		files, err := filepath.Glob(filepath.Join(source, filepath.FromSlash(pattern)))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("llama.cpp's source has no %s", pattern)
		}
		for _, f := range files {
			if err := copyFile(f, filepath.Join(to, "include", filepath.Base(f))); err != nil {
				return err
			}
		}
	}
	licenses := filepath.Join(to, "licenses", "llama.cpp")
	if err := os.MkdirAll(licenses, 0o755); err != nil {
		return err
	}
	return copyFile(filepath.Join(source, "LICENSE"), filepath.Join(licenses, "LICENSE"))
}

// LibraryName is the file that a shared library of llama.cpp is in.
func LibraryName(goos, name string) string {
	switch goos {
	case "windows":
		return name + ".dll"
	case "darwin", "ios":
		return "lib" + name + ".dylib"
	}
	return "lib" + name + ".so"
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// Install puts the built folders' files under dest (bin/, include/ and licenses/), replacing each file that differs in one step, so that
// programs which have it open keep what they opened. Other files there, such as a module someone built, stay.
func Install(folders []string, dest string) error {
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, err := filepath.Rel(folder, path)
			if err != nil {
				return err
			}
			return replace(path, filepath.Join(dest, rel))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func replace(from, to string) error {
	if same(from, to) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(to), ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	fresh := filepath.Join(tmp, filepath.Base(to))
	if err := copyFile(from, fresh); err != nil {
		return err
	}
	return os.Rename(fresh, to)
}
