// Package profile is the form that saved profiles share: JSON that says of what kind and version it is, read strictly, and
// written to a file that is there whole or not at all.
//
// It must not know what a profile is about.
package profile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Decode reads a profile of a kind ("machine") and version into a document, which has those two as "profile" and "version"
// beside its own fields. most bounds what is read, in bytes. The error says in one line what is wrong: no JSON, another
// kind or version, a field that is unknown or of the wrong type.
func Decode(r io.Reader, kind string, version int, most int64, document any) error {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return err
	}
	if int64(len(text)) > most {
		return fmt.Errorf("larger than the %d MiB that a %s profile may have", most>>20, kind)
	}
	// What it is comes first: the fields of another kind or version mean nothing here.
	var is struct {
		Kind    string `json:"profile"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(text, &is); err != nil {
		return fmt.Errorf("not a %s profile: %w", kind, Plainly(err))
	}
	switch {
	case is.Kind != kind:
		return fmt.Errorf(`not a %s profile: it has no "profile": %q`, kind, kind)
	case is.Version != version:
		return fmt.Errorf("a %s profile of version %d; this program reads version %d, so save it anew", kind, is.Version, version)
	}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(document); err != nil {
		return fmt.Errorf("malformed %s profile: %w", kind, Plainly(err))
	}
	return nil
}

// Plainly is an error about JSON of the wrong kind in words that are not Go's.
func Plainly(err error) error {
	if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) {
		return fmt.Errorf("%s is a JSON %s, which it cannot be", cmp.Or(strings.TrimPrefix(kind.Field, "Profile."), "the whole"), kind.Value)
	}
	return err
}

// Save writes what encode writes to a file, which is there whole or not at all. To what is no regular file, a pipe or a
// terminal, it is just written. The error names the file.
func Save(path string, encode func(io.Writer) error) error {
	write := replace
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		write = func(path string, text []byte) error { return os.WriteFile(path, text, 0) }
	}
	var text bytes.Buffer
	err := encode(&text)
	if err == nil {
		err = write(path, text.Bytes())
	}
	if err != nil {
		return fmt.Errorf("%s: cannot be written: %w", path, reason(err))
	}
	return nil
}

// replace puts a new file in the place of path.
func replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".profile-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Load reads a file with decode. The error names the file.
func Load[T any](path string, decode func(io.Reader) (*T, error)) (*T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, reason(err))
	}
	defer f.Close()
	p, err := decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, reason(err))
	}
	return p, nil
}

// reason is an error without the paths that os puts into it; ours already name the file.
func reason(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		return l.Err
	}
	return err
}
