// Package tools names the programs that the build needs from the system, and how a person gets one that is missing.
//
// It must not run any of them or install anything.
package tools

import (
	"fmt"
	"os/exec"
	"strings"
)

// Tool is a program, any of whose Names will do.
type Tool struct {
	For      string            // what it is needed for
	Names    []string          // the first one found is used
	Packages map[string]string // package manager -> package that brings it
}

// The programs that building llama.cpp takes.
var (
	CMake = Tool{"configuring llama.cpp", []string{"cmake"}, map[string]string{
		"apt": "cmake", "dnf": "cmake", "pacman": "cmake", "brew": "cmake", "winget": "Kitware.CMake"}}
	Ninja = Tool{"building llama.cpp", []string{"ninja", "ninja-build"}, map[string]string{
		"apt": "ninja-build", "dnf": "ninja-build", "pacman": "ninja", "brew": "ninja", "winget": "Ninja-build.Ninja"}}
	C = Tool{"compiling llama.cpp", []string{"cc", "gcc", "clang"}, map[string]string{
		"apt": "gcc", "dnf": "gcc", "pacman": "gcc", "brew": "gcc", "winget": "BrechtSanders.WinLibs.POSIX.UCRT"}}
	CXX = Tool{"compiling llama.cpp", []string{"c++", "g++", "clang++"}, map[string]string{
		"apt": "g++", "dnf": "gcc-c++", "pacman": "gcc", "brew": "gcc", "winget": "BrechtSanders.WinLibs.POSIX.UCRT"}}
	Git = Tool{"getting and checking llama.cpp's source", []string{"git"}, map[string]string{
		"apt": "git", "dnf": "git", "pacman": "git", "brew": "git", "winget": "Git.Git"}}
	NPM = Tool{"getting llama.cpp's source where its repository is out of reach", []string{"npm"}, map[string]string{
		"apt": "npm", "dnf": "npm", "pacman": "npm", "brew": "node", "winget": "OpenJS.NodeJS"}}
)

// managers are the package managers we name commands for, in the order they are looked for.
var managers = []struct{ name, program, install string }{
	{"apt", "apt-get", "sudo apt-get install"},
	{"dnf", "dnf", "sudo dnf install"},
	{"pacman", "pacman", "sudo pacman -S"},
	{"brew", "brew", "brew install"},
	{"winget", "winget", "winget install"},
}

// Path finds the tool, "" where there is none.
func (t Tool) Path() string {
	return t.path(exec.LookPath)
}

func (t Tool) path(look func(string) (string, error)) string {
	for _, name := range t.Names {
		if p, err := look(name); err == nil {
			return p
		}
	}
	return ""
}

// Need returns an error that names every one of the tools that is missing, each with the command that installs it.
func Need(all ...Tool) error {
	return need(all, exec.LookPath)
}

func need(all []Tool, look func(string) (string, error)) error {
	var missing []string
	for _, t := range all {
		if t.path(look) == "" {
			missing = append(missing, fmt.Sprintf("  %s (for %s): %s", t.Names[0], t.For, t.install(look)))
		}
	}
	switch len(missing) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("a program is missing; install it and run this again:\n%s", missing[0])
	}
	return fmt.Errorf("%d programs are missing; install them and run this again:\n%s", len(missing), strings.Join(missing, "\n"))
}

// install is the command for this system's package manager, or for each of them where none is found.
func (t Tool) install(look func(string) (string, error)) string {
	var all []string
	for _, m := range managers {
		command := m.install + " " + t.Packages[m.name]
		if _, err := look(m.program); err == nil {
			return command
		}
		all = append(all, command)
	}
	return strings.Join(all, ", or ")
}
