package machine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"unicode"
)

// Version is the version of a profile's JSON form. It changes with the meaning of any of its fields.
const Version = 1

// maxJSON bounds what Decode reads, in bytes: far above the profile of a machine with a hundred devices.
const maxJSON = 1 << 20

// document is a profile's JSON form.
type document struct {
	Kind    string `json:"profile"` // always "machine", so that no other profile is taken for one
	Version int    `json:"version"`
	*Profile
}

// Encode writes the profile as JSON, every path in its texts replaced, so that it can be given away. What contradicts
// itself is not written.
func (p *Profile) Encode(w io.Writer) error {
	if err := p.Check(); err != nil {
		return err
	}
	clean := scrubbed(reflect.ValueOf(*p)).Interface().(Profile)
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(document{"machine", Version, &clean}); err != nil {
		return err
	}
	_, err := w.Write(text.Bytes())
	return err
}

// Decode reads what Encode wrote. Its error says in one line what is wrong: no JSON, not a machine profile, one of another
// version, or one whose facts contradict each other.
func Decode(r io.Reader) (*Profile, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxJSON+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxJSON {
		return nil, fmt.Errorf("larger than the %d MiB that a machine profile may have", maxJSON>>20)
	}
	// What it is comes first: the fields of another kind or version mean nothing here.
	var is struct {
		Kind    string `json:"profile"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(text, &is); err != nil {
		return nil, fmt.Errorf("not a machine profile: %w", plainly(err))
	}
	switch {
	case is.Kind != "machine":
		return nil, errors.New(`not a machine profile: it has no "profile": "machine"`)
	case is.Version != Version:
		return nil, fmt.Errorf("a machine profile of version %d; this program reads version %d, so save it anew", is.Version, Version)
	}
	d := document{Profile: new(Profile)}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&d); err != nil {
		return nil, fmt.Errorf("malformed machine profile: %w", plainly(err))
	}
	*d.Profile = scrubbed(reflect.ValueOf(*d.Profile)).Interface().(Profile) // whoever wrote it, its texts are printed
	if err := d.Check(); err != nil {
		return nil, fmt.Errorf("contradictory machine profile: %w", err)
	}
	return d.Profile, nil
}

// Save writes the profile to a file, which is there whole or not at all. To what is no regular file, a pipe or a terminal,
// it is just written.
func (p *Profile) Save(path string) error {
	var text bytes.Buffer
	if err := p.Encode(&text); err != nil {
		return err
	}
	write := replace
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		write = func(path string, text []byte) error { return os.WriteFile(path, text, 0) }
	}
	if err := write(path, text.Bytes()); err != nil {
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

// reason is an error without the path that os puts into it; ours already name the file.
func reason(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// absolute is an absolute path or one below a user's home, of either slant.
var absolute = regexp.MustCompile(`(^|[\s"'(=:,])(?:~?/[^\s"'(),:]+|[A-Za-z]:\\[^\s"'(),]+|\\\\[^\s"'(),]+)`)

// scrub takes out of a text what a terminal would obey, and then paths.
func scrub(text string) string {
	printable := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text)
	return absolute.ReplaceAllString(printable, "${1}(a path)")
}

// plainly is an error about JSON of the wrong kind in words that are not Go's.
func plainly(err error) error {
	if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) {
		return fmt.Errorf("%s is a JSON %s, which it cannot be", cmp.Or(strings.TrimPrefix(kind.Field, "Profile."), "the whole"), kind.Value)
	}
	return err
}

// scrubbed is a copy of v with scrub applied to every text in it.
func scrubbed(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	if s, ok := v.Interface().(scrubber); ok {
		c.Set(reflect.ValueOf(s.scrubbed()))
		return c
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			c.Field(i).Set(scrubbed(v.Field(i)))
		}
	case reflect.Slice:
		if v.IsNil() {
			return c
		}
		c.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			c.Index(i).Set(scrubbed(v.Index(i)))
		}
	case reflect.String:
		c.SetString(scrub(v.String()))
	default:
		c.Set(v)
	}
	return c
}

type scrubber interface{ scrubbed() any }

func (f Fact[T]) scrubbed() any { f.from = scrub(f.from); return f }
