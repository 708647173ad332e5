package release

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/bmoe/bmoe/ci/code"
	"github.com/bmoe/bmoe/ci/llama"
)

// system is one that there is a release for, and what building its libraries takes.
type system struct {
	code.Platform
	takes string // where they can be built, besides on that system itself
}

var systems = []system{
	{code.Platform{OS: "linux", Arch: "amd64"}, "gcc for it (g++-x86-64-linux-gnu), or a machine of that kind"},
	{code.Platform{OS: "linux", Arch: "arm64"}, "gcc for it (g++-aarch64-linux-gnu), or a machine of that kind"},
	{code.Platform{OS: "windows", Arch: "amd64"}, "mingw-w64 (g++-mingw-w64-x86-64), or a machine of that kind"},
	{code.Platform{OS: "windows", Arch: "arm64"}, "a Windows machine with that processor and clang"},
	{code.Platform{OS: "darwin", Arch: "amd64"}, "a Mac with Apple's command line tools"},
	{code.Platform{OS: "darwin", Arch: "arm64"}, "a Mac with Apple's command line tools"},
	{code.Platform{OS: "android", Arch: "arm64"}, "the Android NDK, for the program too: its dynamic loader is reached through C"},
}

// toolchain is what builds llama.cpp for the system on this machine. The error says what that takes where there is none.
func (s system) toolchain(ctx context.Context) (llama.Toolchain, error) {
	tc, err := llama.For(ctx, s.OS, s.Arch)
	if err != nil && (s.OS != runtime.GOOS || s.Arch != runtime.GOARCH) {
		err = fmt.Errorf("its libraries take %s", s.takes)
	}
	return tc, err
}

// part is a system and what became of its release here.
type part struct {
	system
	missing error    // why there is no archive
	modules []string // in the archive
	leftOut []string // with reasons
	archive string   // file
	size    int64    // bytes
	needs   []string // from outside
	glibc   string   // oldest that will do, where it matters
}

// errNone says that nothing at all could be packed.
var errNone = errors.New("no system's libraries can be built here, so there is nothing to release")
