package llama

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/bmoe/bmoe/ci/tools"
)

// foreign is a compiler for another system than this one's.
type foreign struct {
	c, cxx  tools.Tool
	options []string // of cmake
	flags   []string // of both compilers
	link    []string // of the linker
	runtime []string // libraries of the compiler's own that what it builds needs beside it
}

// foreigners are those that a release uses, by the system they compile for.
var foreigners = map[string]foreign{
	"linux/arm64": {
		c: tools.Tool{For: "compiling llama.cpp for linux/arm64", Names: []string{"aarch64-linux-gnu-gcc"}, Packages: map[string]string{
			"apt": "gcc-aarch64-linux-gnu", "dnf": "gcc-aarch64-linux-gnu", "pacman": "aarch64-linux-gnu-gcc", "brew": "-", "winget": "-"}},
		cxx: tools.Tool{For: "compiling llama.cpp for linux/arm64", Names: []string{"aarch64-linux-gnu-g++"}, Packages: map[string]string{
			"apt": "g++-aarch64-linux-gnu", "dnf": "gcc-c++-aarch64-linux-gnu", "pacman": "aarch64-linux-gnu-gcc", "brew": "-", "winget": "-"}},
		options: []string{"-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64"},
	},
	"windows/amd64": {
		c: tools.Tool{For: "compiling llama.cpp for windows/amd64", Names: []string{"x86_64-w64-mingw32-gcc-posix", "x86_64-w64-mingw32-gcc"}, Packages: map[string]string{
			"apt": "gcc-mingw-w64-x86-64-posix", "dnf": "mingw64-gcc", "pacman": "mingw-w64-gcc", "brew": "mingw-w64", "winget": "-"}},
		cxx: tools.Tool{For: "compiling llama.cpp for windows/amd64", Names: []string{"x86_64-w64-mingw32-g++-posix", "x86_64-w64-mingw32-g++"}, Packages: map[string]string{
			"apt": "g++-mingw-w64-x86-64-posix", "dnf": "mingw64-gcc-c++", "pacman": "mingw-w64-gcc", "brew": "mingw-w64", "winget": "-"}},
		options: []string{"-DCMAKE_SYSTEM_NAME=Windows", "-DCMAKE_SYSTEM_PROCESSOR=x86_64"},
		// Older headers of mingw have these names for a process alone; the values are the same.
		flags: []string{"-DTHREAD_POWER_THROTTLING_STATE=PROCESS_POWER_THROTTLING_STATE",
			"-DTHREAD_POWER_THROTTLING_CURRENT_VERSION=PROCESS_POWER_THROTTLING_CURRENT_VERSION",
			"-DTHREAD_POWER_THROTTLING_EXECUTION_SPEED=PROCESS_POWER_THROTTLING_EXECUTION_SPEED"},
		// The compiler's runtime is inside each library, and none exports it: one that did would have the next fail to link.
		link:    []string{"-static-libgcc", "-static-libstdc++", "-Wl,--exclude-libs,ALL", "-Wl,--no-insert-timestamp"},
		runtime: []string{"libwinpthread-1.dll"},
	},
}

// For is the toolchain for a system, in Go's names: this machine's own, or one that compiles for another.
func For(ctx context.Context, goos, goarch string) (Toolchain, error) {
	if goos == runtime.GOOS && goarch == runtime.GOARCH {
		return HostToolchain(ctx)
	}
	f, ok := foreigners[goos+"/"+goarch]
	if !ok {
		return Toolchain{}, fmt.Errorf("no compiler for %s/%s is known on another system", goos, goarch)
	}
	if err := tools.Need(tools.CMake, tools.Ninja, f.c, f.cxx); err != nil {
		return Toolchain{}, err
	}
	tc := Toolchain{
		Cross: append(append([]string{}, f.flags...), f.link...),
		c:     f.c.Path(), cxx: f.cxx.Path(), cmake: tools.CMake.Path(), ninja: tools.Ninja.Path(),
		goos: goos, goarch: goarch, foreign: &f,
	}
	return tc, tc.ask(ctx)
}

// System is what the toolchain compiles for, in Go's names.
func (tc Toolchain) System() (goos, goarch string) {
	if tc.foreign == nil {
		return runtime.GOOS, runtime.GOARCH
	}
	return tc.goos, tc.goarch
}

// configured are cmake's options for a build in the folder work.
func (tc Toolchain) configured(work string) ([]string, error) {
	options := []string{"-DCMAKE_MAKE_PROGRAM=" + tc.ninja, "-DCMAKE_C_COMPILER=" + tc.c, "-DCMAKE_CXX_COMPILER=" + tc.cxx}
	if tc.foreign == nil {
		return options, nil
	}
	options = append(options, tc.foreign.options...)
	if len(tc.foreign.link) > 0 {
		link := strings.Join(tc.foreign.link, " ")
		options = append(options, "-DCMAKE_SHARED_LINKER_FLAGS="+link, "-DCMAKE_MODULE_LINKER_FLAGS="+link, "-DCMAKE_EXE_LINKER_FLAGS="+link)
	}
	if tc.goos == "windows" {
		// llama.cpp's libraries are named for Windows in ggml's folder alone.
		names := filepath.Join(work, "names.cmake")
		if err := os.WriteFile(names, []byte("set(CMAKE_SHARED_LIBRARY_PREFIX \"\")\nset(CMAKE_SHARED_MODULE_PREFIX \"\")\n"), 0o644); err != nil {
			return nil, err
		}
		options = append(options, "-DCMAKE_PROJECT_INCLUDE="+names)
	}
	return options, nil
}

// collectRuntime copies the compiler's own libraries that the built ones need into bin.
func (tc Toolchain) collectRuntime(bin string) error {
	if tc.foreign == nil {
		return nil
	}
	for _, name := range tc.foreign.runtime {
		out, err := exec.Command(tc.cxx, "-print-file-name="+name).Output()
		path := strings.TrimSpace(string(out))
		if err != nil || !filepath.IsAbs(path) {
			return errors.Join(err, fmt.Errorf("%s does not say where its %s is", tc.cxx, name))
		}
		if err := copyFile(path, filepath.Join(bin, name)); err != nil {
			return err
		}
	}
	return nil
}
