package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/bmoe/bmoe/core/profile"
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
	d := document{Profile: new(Profile)}
	if err := profile.Decode(r, "model", Version, maxJSON, &d); err != nil {
		return nil, err
	}
	p, err := New(*d.Profile)
	if err != nil {
		return nil, fmt.Errorf("contradictory model profile: %w", err)
	}
	return p, nil
}

// Save writes the profile to a file, which is there whole or not at all. To what is no regular file, a pipe or a terminal,
// it is just written.
func (p *Profile) Save(path string) error { return profile.Save(path, p.Encode) }

// Load reads a profile from a file. Its error names the file.
func Load(path string) (*Profile, error) { return profile.Load(path, Decode) }
