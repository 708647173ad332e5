package llama

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bmoe/bmoe/backends"
)

// Bump moves the pin of the checkout at root to another release and fetches its source: from BMOE_LLAMA_DIR, a clone that has the
// tag, else from the upstream repository, else from the npm package, which is another one too (npm; "" for the same). It returns
// what moved between the two sources that bmoe relies on, nothing where the tag is the pinned one.
//
// The new pin stays written whatever comes next, so that what must be changed can be.
func Bump(ctx context.Context, root, tag, npm string) (moved []string, err error) {
	old, err := ReadPin(root)
	if err != nil {
		return nil, err
	}
	before, err := Source(ctx, root, old)
	if err != nil {
		return nil, err
	}
	if tag == old.Tag && (npm == "" || npm == old.NPM) {
		return nil, nil
	}
	pin := old
	pin.Tag = tag
	if npm != "" {
		pin.NPM = npm
	}
	build := filepath.Join(root, "build")
	if err := os.MkdirAll(build, 0o755); err != nil {
		return nil, err
	}
	tmp, err := os.MkdirTemp(build, "bump-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	after := filepath.Join(tmp, "llama.cpp")
	if err := cloneTag(ctx, tmp, after, pin); err != nil {
		return nil, err
	}
	if pin.Tree, err = TreeID(ctx, after); err != nil {
		return nil, err
	}
	if moved, err = differences(before, after); err != nil {
		return nil, err
	}
	if err := writePin(root, pin); err != nil {
		return nil, err
	}
	kept := filepath.Join(root, "llama.cpp", "source")
	if before != kept {
		return moved, nil // the person's own folder stays as it is: BMOE_LLAMA_DIR must be taken to the tag by hand
	}
	if err := os.RemoveAll(kept); err != nil {
		return nil, err
	}
	return moved, os.Rename(after, kept)
}

// cloneTag puts the source of the pin's tag, whose tree is not known yet, into to.
func cloneTag(ctx context.Context, tmp, to string, pin Pin) error {
	if dir := os.Getenv(SourceVariable); dir != "" {
		return runGit(ctx, "clone", "--quiet", "--branch="+pin.Tag, dir, to)
	}
	upstream := reach(ctx, pin)
	if upstream == nil {
		return runGit(ctx, "clone", "--depth=1", "--branch="+pin.Tag, pin.Repository, to)
	}
	if err := fromNPM(ctx, tmp, to, pin); err != nil {
		return fmt.Errorf("%s is out of reach (%w), and so is the package: %w", pin.Repository, upstream, err)
	}
	// The bundle has no tags: the source itself says which release it is.
	if inside := releaseOf(to); inside != pin.Tag {
		return fmt.Errorf("the package %s has %q inside, not %s: name the version that has it with -npm", pin.NPM, inside, pin.Tag)
	}
	return nil
}

var versionNumber = regexp.MustCompile(`set\(LLAMA_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)\)`)

// releaseOf is the tag of the release that a source says it is, "" if it does not.
func releaseOf(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, "CMakeLists.txt"))
	numbers := versionNumber.FindAllStringSubmatch(string(text), -1)
	if err != nil || len(numbers) != 3 {
		return ""
	}
	return "v" + numbers[0][1] + "." + numbers[1][1] + "." + numbers[2][1]
}

// writePin writes the pin of the checkout at root.
func writePin(root string, pin Pin) error {
	data, err := json.MarshalIndent(pin, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "llama.cpp", "pin.json"), append(data, '\n'), 0o644)
}

// differences says what moved between two sources: headers that we mirror, options that we give cmake and that are gone, and
// CPU modules that came or went. What the structs look like is for the tests of core/llama to say.
func differences(before, after string) ([]string, error) {
	var moved []string
	for _, pattern := range headers {
		files := map[string]bool{}
		for _, dir := range []string{before, after} {
			found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
			if err != nil {
				return nil, err
			}
			for _, f := range found {
				rel, err := filepath.Rel(dir, f)
				if err != nil {
					return nil, err
				}
				files[rel] = true
			}
		}
		for rel := range files {
			if !same(filepath.Join(before, rel), filepath.Join(after, rel)) {
				moved = append(moved, "header "+filepath.ToSlash(rel)+": "+extent(before, after, rel))
			}
		}
	}
	text, err := cmakeText(after)
	if err != nil {
		return nil, err
	}
	for _, option := range options() {
		if !strings.Contains(text, option) {
			moved = append(moved, "option "+option+" is gone from llama.cpp")
		}
	}
	for _, change := range variants(text) {
		moved = append(moved, "CPU module "+change)
	}
	slices.Sort(moved)
	return moved, nil
}

// extent says how many lines of a file came and went.
func extent(before, after, rel string) string {
	out, err := exec.Command("git", "diff", "--no-index", "--numstat", filepath.Join(before, rel), filepath.Join(after, rel)).Output()
	var exit *exec.ExitError
	if fields := strings.Fields(string(out)); len(fields) >= 2 && (err == nil || errors.As(err, &exit)) {
		return fields[0] + " lines came, " + fields[1] + " went"
	}
	return "changed"
}

// cmakeText is all that llama.cpp tells cmake.
func cmakeText(dir string) (string, error) {
	var text bytes.Buffer
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() != "CMakeLists.txt" && filepath.Ext(path) != ".cmake" {
			return err
		}
		data, err := os.ReadFile(path)
		text.Write(data)
		return err
	})
	return text.String(), err
}

// options are those of llama.cpp's that our builds give a value.
func options() []string {
	var names []string
	all := append([]backends.Module{backends.Base}, backends.CPU("linux", "amd64")...)
	for _, a := range backends.Accelerators {
		all = append(all, a.Module)
	}
	for _, m := range all {
		for _, o := range m.Configured("linux") {
			name, _, _ := strings.Cut(strings.TrimPrefix(o, "-D"), "=")
			if strings.HasPrefix(name, "GGML_") || strings.HasPrefix(name, "LLAMA_") {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

var variant = regexp.MustCompile(`ggml_add_cpu_backend_variant\((\S+)[ \t]*([^)]*)\)`)

// variants compares the table of CPU modules in package backends with llama.cpp's.
func variants(text string) []string {
	theirs := map[string]string{}
	for _, m := range variant.FindAllStringSubmatch(text, -1) {
		features := strings.Fields(m[2])
		slices.Sort(features)
		theirs["cpu-"+m[1]] = strings.Join(slices.DeleteFunc(features, func(f string) bool { return f == "NOSVE" }), " ")
	}
	var changes []string
	for _, system := range [][2]string{{"linux", "amd64"}, {"linux", "arm64"}, {"android", "arm64"}, {"darwin", "arm64"}} {
		for _, m := range backends.CPU(system[0], system[1]) {
			needs := slices.Sorted(slices.Values(m.Needs))
			ours := strings.Join(needs, " ")
			if got, ok := theirs[m.Name]; !ok {
				changes = append(changes, m.Name+" is gone from llama.cpp")
			} else if got != ours {
				changes = append(changes, fmt.Sprintf("%s takes %s, not %s", m.Name, got, ours))
			}
			delete(theirs, m.Name)
		}
	}
	for name := range theirs {
		if !strings.HasPrefix(name, "cpu-power") && !strings.HasPrefix(name, "cpu-z1") && !strings.HasPrefix(name, "cpu-riscv") && !strings.Contains(name, "$") && !strings.Contains(name, "tag_name") {
			changes = append(changes, name+" is new")
		}
	}
	return changes
}
