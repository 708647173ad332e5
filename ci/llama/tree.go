package llama

import (
	"bytes"
	"context"
	"crypto/sha1" // git's own ids; the pin is one
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// entry is one file of a source tree as git sees it.
type entry struct {
	path string // with slashes
	mode string // 100644, 100755 or 120000 (a symbolic link)
}

// TreeID is git's id of what is on disk in dir, not of what was once committed: it is what a compiler will read.
//
// In a clone the tracked files count, whose modes git knows; changed ones change the id, files git does not track (such as an
// earlier build's) do not. In a plain folder every file counts.
func TreeID(ctx context.Context, dir string) (string, error) {
	entries, err := list(ctx, dir)
	if err != nil {
		return "", err
	}
	if len(entries) == 0 {
		return "", fmt.Errorf("%s is empty", dir)
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	sum, err := hashTree(dir, "", entries)
	return hex.EncodeToString(sum), err
}

// Check fails unless dir holds the source with this tree id.
func Check(ctx context.Context, dir, want string) error {
	got, err := TreeID(ctx, dir)
	if err != nil {
		return fmt.Errorf("llama.cpp's source cannot be checked: %w", err)
	}
	if got != want {
		return fmt.Errorf("the llama.cpp source in %s is not the pinned one: its git tree is %s, llama.cpp/pin.json asks for %s; "+
			"check out the pinned release there, or remove what was changed or added", dir, got, want)
	}
	return nil
}

func list(ctx context.Context, dir string) ([]entry, error) {
	switch _, err := os.Stat(filepath.Join(dir, ".git")); {
	case err == nil:
		return tracked(ctx, dir)
	case errors.Is(err, fs.ErrNotExist):
		return walk(dir)
	default:
		return nil, err
	}
}

// tracked asks git for the files and modes in the clone's index.
func tracked(ctx context.Context, dir string) ([]entry, error) {
	cmd := exec.CommandContext(ctx, "git", "-C", dir, "ls-files", "--stage", "-z")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files in %s: %w: %s", dir, err, bytes.TrimSpace(stderr.Bytes()))
	}
	var entries []entry
	for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if line == "" {
			continue
		}
		meta, name, found := strings.Cut(line, "\t")
		fields := strings.Fields(meta) // mode, object, stage
		if !found || len(fields) != 3 {
			return nil, fmt.Errorf("git ls-files in %s: line %q is not understood", dir, line)
		}
		if fields[2] != "0" {
			return nil, fmt.Errorf("%s has unresolved conflicts: %s", dir, name)
		}
		if fields[0] == "160000" {
			return nil, fmt.Errorf("%s has a submodule, %s; the pinned source has none", dir, name)
		}
		entries = append(entries, entry{name, fields[0]})
	}
	return entries, nil
}

func walk(dir string) ([]entry, error) {
	var entries []entry
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := "100644"
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			mode = "120000"
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is neither a file nor a link", p)
		case info.Mode()&0o100 != 0:
			mode = "100755"
		}
		entries = append(entries, entry{filepath.ToSlash(rel), mode})
		return nil
	})
	return entries, err
}

// hashTree hashes the folder prefix ("" or ending in a slash), whose files are entries, sorted by path.
//
// A tree object lists its names in byte order, a folder's as if it ended in a slash: which is the order of whole paths.
func hashTree(dir, prefix string, entries []entry) ([]byte, error) {
	var tree bytes.Buffer
	for len(entries) > 0 {
		first := entries[0]
		name, _, isDir := strings.Cut(first.path[len(prefix):], "/")
		count, mode := 1, first.mode
		var sum []byte
		var err error
		if isDir {
			sub := prefix + name + "/"
			for count < len(entries) && strings.HasPrefix(entries[count].path, sub) {
				count++
			}
			mode = "40000"
			sum, err = hashTree(dir, sub, entries[:count])
		} else {
			sum, err = hashBlob(filepath.Join(dir, filepath.FromSlash(path.Clean(first.path))), mode)
		}
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&tree, "%s %s\x00%s", mode, name, sum)
		entries = entries[count:]
	}
	return hashObject("tree", tree.Bytes()), nil
}

func hashBlob(file, mode string) ([]byte, error) {
	if mode == "120000" {
		target, err := os.Readlink(file)
		return hashObject("blob", []byte(filepath.ToSlash(target))), err
	}
	data, err := os.ReadFile(file)
	return hashObject("blob", data), err
}

func hashObject(kind string, content []byte) []byte {
	h := sha1.New()
	fmt.Fprintf(h, "%s %d\x00", kind, len(content))
	h.Write(content)
	return h.Sum(nil)
}
