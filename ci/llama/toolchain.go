package llama

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/bmoe/bmoe/ci/tools"
)

// Toolchain is the compiler that builds llama.cpp, as far as it decides the bytes that come out.
type Toolchain struct {
	C, CXX  string // what each says to --version, first line
	Machine string // what it compiles for
	Flags   string // CFLAGS, CXXFLAGS and LDFLAGS of the environment, none of which are for another system's

	Cross []string `json:",omitempty"` // flags that a compiler for another system takes

	c, cxx, cmake, ninja string // paths
	goos, goarch         string // of another system
	foreign              *foreign
}

// HostToolchain asks this machine's compilers who they are: CC and CXX if those are set, else the first that is found.
func HostToolchain(ctx context.Context) (Toolchain, error) {
	c, cxx := tools.C, tools.CXX
	if v := os.Getenv("CC"); v != "" {
		c.Names = []string{v}
	}
	if v := os.Getenv("CXX"); v != "" {
		cxx.Names = []string{v}
	}
	if err := tools.Need(tools.CMake, tools.Ninja, c, cxx); err != nil {
		return Toolchain{}, err
	}
	tc := Toolchain{
		Flags: fmt.Sprintf("%q %q %q", os.Getenv("CFLAGS"), os.Getenv("CXXFLAGS"), os.Getenv("LDFLAGS")),
		c:     c.Path(),
		cxx:   cxx.Path(),
		cmake: tools.CMake.Path(),
		ninja: tools.Ninja.Path(),
	}
	return tc, tc.ask(ctx)
}

// ask has the compilers say who they are.
func (tc *Toolchain) ask(ctx context.Context) error {
	for _, ask := range []struct {
		answer *string
		path   string
		arg    string
	}{
		{&tc.C, tc.c, "--version"},
		{&tc.CXX, tc.cxx, "--version"},
		{&tc.Machine, tc.cxx, "-dumpmachine"},
	} {
		out, err := exec.CommandContext(ctx, ask.path, ask.arg).Output()
		if err != nil {
			return fmt.Errorf("%s %s: %w; llama.cpp is built with gcc or clang", ask.path, ask.arg, err)
		}
		first, _, _ := bytes.Cut(out, []byte("\n"))
		*ask.answer = strings.TrimSpace(string(first))
	}
	return nil
}

// environment is the compiler's: the person's own flags, and the folders' names kept out of what is built, so that two folders
// give the same bytes. Git is kept from looking around the source for a commit, which would be that of whatever repository the
// source happens to lie in.
func (tc Toolchain) environment(source, build string) []string {
	flags := fmt.Sprintf("-ffile-prefix-map=%s=llama.cpp -ffile-prefix-map=%s=build", source, build)
	env := append(os.Environ(), "GIT_DIR="+os.DevNull)
	if tc.foreign != nil {
		flags = strings.TrimSpace(strings.Join(tc.foreign.flags, " ") + " " + flags)
		return append(env, "CFLAGS="+flags, "CXXFLAGS="+flags, "LDFLAGS=")
	}
	for _, name := range []string{"CFLAGS", "CXXFLAGS"} {
		env = append(env, name+"="+strings.TrimSpace(os.Getenv(name)+" "+flags))
	}
	return env
}
