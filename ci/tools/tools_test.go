package tools

import (
	"os/exec"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// system has just these programs.
func system(programs ...string) func(string) (string, error) {
	return func(name string) (string, error) {
		if slices.Contains(programs, name) {
			return "/bin/" + name, nil
		}
		return "", exec.ErrNotFound
	}
}

func TestNothingIsMissing(t *testing.T) {
	t.Parallel()
	require.NoError(t, need([]Tool{CMake, Ninja, CXX}, system("cmake", "ninja-build", "clang++")))
}

func TestAMissingToolComesWithItsCommand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ manager, want string }{
		{"apt-get", "sudo apt-get install ninja-build"},
		{"dnf", "sudo dnf install ninja-build"},
		{"pacman", "sudo pacman -S ninja"},
		{"brew", "brew install ninja"},
		{"winget", "winget install Ninja-build.Ninja"},
	} {
		t.Run(c.manager, func(t *testing.T) {
			t.Parallel()
			err := need([]Tool{CMake, Ninja}, system("cmake", c.manager))
			assert.EqualError(t, err, "a program is missing; install it and run this again:\n  ninja (for building llama.cpp): "+c.want)
		})
	}
}

func TestEveryMissingToolIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	err := need([]Tool{CMake, Ninja, CXX, Git}, system("git", "apt-get"))
	require.Error(t, err)
	for _, want := range []string{"3 programs", "install cmake", "install ninja-build", "install g++"} {
		assert.Contains(t, err.Error(), want)
	}
	assert.NotContains(t, err.Error(), "install git")
}

func TestWithoutAPackageManagerEveryCommandIsNamed(t *testing.T) {
	t.Parallel()
	err := need([]Tool{Git}, system())
	for _, m := range managers {
		assert.ErrorContains(t, err, m.install+" "+Git.Packages[m.name])
	}
}

func TestEveryToolHasAPackageForEveryManager(t *testing.T) {
	t.Parallel()
	for _, tool := range []Tool{CMake, Ninja, C, CXX, Git, NPM} {
		for _, m := range managers {
			assert.NotEmpty(t, tool.Packages[m.name], "%s with %s", tool.Names[0], m.name)
		}
	}
}
