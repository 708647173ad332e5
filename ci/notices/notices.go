// Package notices gathers the licences of what the product contains: the Go modules linked into its programs, Go itself, and
// llama.cpp, whose libraries lie beside them.
//
// It must not judge a licence; it only refuses to leave one out.
package notices

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmoe/bmoe/ci/code"
	"github.com/bmoe/bmoe/ci/llama"
)

// File is where the notices are kept, in the checkout's top folder.
const File = "THIRD_PARTY_NOTICES"

// part is something the product contains.
type part struct {
	name    string
	folders []string // where its licence may be
	text    string   // its licence, where it lies in no folder
}

// What llama.cpp's sources say at their own head that they contain of others, at the pinned release.
var (
	//go:embed within/llamafile.txt
	llamafile string
	//go:embed within/yarn.txt
	yarn string
)

// Write brings File up to date. built is the folder where llama.cpp's licence lies beside its libraries.
func Write(ctx context.Context, root, built string) error {
	text, err := gather(ctx, root, built)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, File), text, 0o644)
}

// Check fails if File is not what Write would write.
func Check(ctx context.Context, root, built string) error {
	want, err := gather(ctx, root, built)
	if err != nil {
		return err
	}
	got, err := os.ReadFile(filepath.Join(root, File))
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%s is not up to date with what the programs contain: run go tool mage notices", File)
	}
	return nil
}

func gather(ctx context.Context, root, built string) ([]byte, error) {
	pin, err := llama.ReadPin(root)
	if err != nil {
		return nil, err
	}
	modules, err := linked(ctx, root)
	if err != nil {
		return nil, err
	}
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	dir := strings.TrimSpace(string(goroot))
	parts := append([]part{
		{"llama.cpp " + pin.Tag + " (libllama, libggml and its modules, parts of common)", []string{filepath.Join(built, "licenses", "llama.cpp")}, ""},
		{"JSON for Modern C++ (within common)", []string{filepath.Join(built, "licenses", "json")}, ""},
		{"llamafile's matrix multiplication (within the modules for the CPU)", nil, llamafile},
		{"YaRN (within the modules for the CPU)", nil, yarn},
		// Some distributions keep Go's licence one folder up.
		{"Go (runtime and standard library)", []string{dir, filepath.Dir(dir), "/usr/share/licenses/go", "/usr/share/doc/golang"}, ""},
	}, modules...)

	var out bytes.Buffer
	fmt.Fprintln(&out, "bmoe contains the work of others, listed here with their licences.")
	fmt.Fprintln(&out, "This file is made by: go tool mage notices")
	for _, p := range parts {
		text, err := p.licence()
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "\n%s\n%s\n\n%s\n", p.name, strings.Repeat("=", len(p.name)), strings.TrimSpace(text))
	}
	return out.Bytes(), nil
}

// linked lists the modules in any of the product's programs on any of its platforms.
func linked(ctx context.Context, root string) ([]part, error) {
	var parts []part
	for _, p := range code.Platforms {
		cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-f", `{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}|{{.Dir}}{{end}}{{end}}`, "./cmd/...")
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.OS, "GOARCH="+p.Arch)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list for %s: %w", p, err)
		}
		for line := range strings.Lines(string(out)) {
			name, dir, _ := strings.Cut(strings.TrimSpace(line), "|")
			known := slices.ContainsFunc(parts, func(p part) bool { return p.name == name })
			if name != "" && !known {
				parts = append(parts, part{name, []string{dir}, ""})
			}
		}
	}
	slices.SortFunc(parts, func(a, b part) int { return strings.Compare(a.name, b.name) })
	return parts, nil
}

// licence is its own text or, without one, that of every licence file in the first folder that has one.
func (p part) licence() (string, error) {
	if p.text != "" {
		return strings.TrimSpace(p.text), nil
	}
	for _, dir := range p.folders {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		var texts []string
		for _, e := range entries {
			name := strings.ToUpper(e.Name())
			if e.IsDir() || !strings.HasPrefix(name, "LICENSE") && !strings.HasPrefix(name, "LICENCE") && !strings.HasPrefix(name, "COPYING") && !strings.HasPrefix(name, "NOTICE") {
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return "", err
			}
			texts = append(texts, strings.ReplaceAll(strings.TrimSpace(string(data)), "\r\n", "\n"))
		}
		if len(texts) > 0 {
			return strings.Join(texts, "\n\n"), nil
		}
	}
	return "", fmt.Errorf("%s has no licence file in %s", p.name, strings.Join(p.folders, " or "))
}
