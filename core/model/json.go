package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Version is the version of a profile's JSON form. It changes with the meaning of any of its fields.
const Version = 1

// maxJSON bounds what Load reads, in bytes: far above the profile of the largest model.
const maxJSON = 64 << 20

// document is a profile's JSON form: its facts, and nothing that follows from them.
type document struct {
	Kind    string `json:"profile"` // always "model", so that no other profile is taken for one
	Version int    `json:"version"`
	*Profile
}

// Encode writes the profile as JSON, one tensor a line.
func (p *Profile) Encode(w io.Writer) error {
	facts := *p
	facts.Tensors = nil // left out of head
	head, err := json.MarshalIndent(document{"model", Version, &facts}, "", "  ")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.Write(bytes.TrimSuffix(head, []byte("\n}")))
	b.WriteString(",\n  \"tensors\": [")
	for i, t := range p.Tensors {
		line, err := json.Marshal(t)
		if err != nil {
			return err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n    ")
		b.Write(line)
	}
	b.WriteString("\n  ]\n}\n")
	_, err = w.Write(b.Bytes())
	return err
}

// Decode reads what Encode wrote. Its error says in one line what is wrong: no JSON, not a model profile, one of another
// version, or one whose facts contradict each other.
func Decode(r io.Reader) (*Profile, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxJSON+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxJSON {
		return nil, fmt.Errorf("larger than the %d MiB that a model profile may have", maxJSON>>20)
	}
	// What it is comes first: the fields of another kind or version mean nothing here.
	var is struct {
		Kind    string `json:"profile"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(text, &is); err != nil {
		return nil, fmt.Errorf("not a model profile: %w", plainly(err))
	}
	switch {
	case is.Kind != "model":
		return nil, errors.New(`not a model profile: it has no "profile": "model"`)
	case is.Version != Version:
		return nil, fmt.Errorf("a model profile of version %d; this program reads version %d, so save it anew", is.Version, Version)
	}
	d := document{Profile: new(Profile)}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&d); err != nil {
		return nil, fmt.Errorf("malformed model profile: %w", plainly(err))
	}
	p, err := New(*d.Profile)
	if err != nil {
		return nil, fmt.Errorf("contradictory model profile: %w", err)
	}
	return p, nil
}

// Save writes the profile to a file, which is there whole or not at all. To what is no regular file, a pipe or a terminal,
// it is just written.
func (p *Profile) Save(path string) (err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			err = errors.Join(p.Encode(f), f.Close())
		}
		if err != nil {
			return fmt.Errorf("%s: cannot be written: %w", path, reason(err))
		}
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".profile-*")
	if err != nil {
		return fmt.Errorf("%s: cannot be written: %w", path, reason(err))
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
			err = fmt.Errorf("%s: cannot be written: %w", path, reason(err))
		}
	}()
	if err := errors.Join(p.Encode(f), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Load reads a profile from a file. Its error names the file.
func Load(path string) (*Profile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, reason(err))
	}
	defer f.Close()
	p, err := Decode(f)
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

// plainly is an error about JSON of the wrong kind in words that are not Go's.
func plainly(err error) error {
	if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) {
		return fmt.Errorf("%s is a JSON %s, which it cannot be", cmp.Or(kind.Field, "the whole"), kind.Value)
	}
	return err
}
