package backends

import (
	"io/fs"
	"slices"
)

// Module is one shared library that ggml loads at run time.
type Module struct {
	Name    string   // as in the file's name: cpu-haswell is libggml-cpu-haswell.so on Linux
	Target  string   // what ninja calls it
	Options []string // cmake options under which the target exists, beyond those of every build; modules with equal ones share a build
	Needs   []string // processor features, in llama.cpp's names; without one of them the module is not loaded
	Own     fs.FS    // sources of ours that it is built of, against Base; nil: it is a target of llama.cpp's
}

// Base is what every module and the binary rest on: libllama, libggml and libggml-base, with no processor's kernels inside.
// The pin is a release, and libllama says so when asked for its version.
var Base = Module{Name: "base", Target: "llama", Options: []string{"-DGGML_CPU=OFF", "-DLLAMA_BUILD_IS_DEV=OFF"}}

// BaseLibraries are the libraries that Base makes, each after what it needs itself.
var BaseLibraries = []string{"ggml-base", "ggml", "llama"}

// options configure every build of llama.cpp, whichever module it is for.
//
// Modules are loaded by path at run time (GGML_BACKEND_DL) and must run on machines other than this one (GGML_NATIVE off).
// OpenMP is off because bmoe owns its threads and ships no runtime library for another pool.
var options = []string{
	"-DCMAKE_BUILD_TYPE=Release",
	"-DBUILD_SHARED_LIBS=ON",
	"-DGGML_BACKEND_DL=ON",
	"-DGGML_NATIVE=OFF",
	"-DGGML_OPENMP=OFF",
	"-DGGML_CCACHE=OFF",
	"-DLLAMA_BUILD_TESTS=OFF",
	"-DLLAMA_BUILD_EXAMPLES=OFF",
	"-DLLAMA_BUILD_TOOLS=OFF",
	"-DLLAMA_BUILD_SERVER=OFF",
	"-DLLAMA_BUILD_APP=OFF",
	"-DLLAMA_BUILD_COMMON=ON",
	"-DLLAMA_OPENSSL=OFF",
}

// Configured are all the options of a module's build for the system goos.
func (m Module) Configured(goos string) []string {
	return slices.Concat(options, runPath(goos), m.Options)
}

// runPath has every library look for the others in its own folder and nowhere else. cmake's own word for it,
// CMAKE_BUILD_RPATH_USE_ORIGIN, ends the path with a colon, and after that colon glibc looks in the working directory.
func runPath(goos string) []string {
	switch goos {
	case "windows":
		return nil
	case "darwin", "ios":
		return []string{"-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON", "-DCMAKE_INSTALL_RPATH=@loader_path"}
	}
	return []string{"-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON", "-DCMAKE_INSTALL_RPATH=$ORIGIN"}
}
