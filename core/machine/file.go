package machine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"
)

// Load reads a profile and refuses one that is malformed, of another version or that contradicts itself. The error is one
// line; name is what it calls the file.
func Load(r io.Reader, name string) (Profile, error) {
	text, err := io.ReadAll(io.LimitReader(r, largest+1))
	if err != nil {
		return Profile{}, fmt.Errorf("%s: %w", name, err)
	}
	if len(text) > largest {
		return Profile{}, fmt.Errorf("%s: larger than any machine profile", name)
	}
	var version struct {
		Version *int `json:"version"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return Profile{}, fmt.Errorf("%s: not a machine profile: %w", name, oneLine(err))
	}
	if version.Version == nil {
		return Profile{}, fmt.Errorf("%s: not a machine profile: it states no version", name)
	}
	if *version.Version != Version {
		return Profile{}, fmt.Errorf("%s: a machine profile of version %d, and this program reads version %d: save it again",
			name, *version.Version, Version)
	}
	var p Profile
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return Profile{}, fmt.Errorf("%s: %w", name, oneLine(err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Profile{}, fmt.Errorf("%s: something follows the profile", name)
	}
	if err := p.Check(); err != nil {
		return Profile{}, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// largest is far more than a profile of a hundred devices.
const largest = 1 << 20

func oneLine(err error) error {
	return errors.New(strings.Join(strings.Fields(err.Error()), " "))
}

// Save writes the profile, its version set and every path in its texts replaced, so that it can be given away.
func (p Profile) Save(w io.Writer) error {
	p.Version = Version
	if err := p.Check(); err != nil {
		return err
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(scrubbed(reflect.ValueOf(p)).Interface()); err != nil {
		return err
	}
	_, err := w.Write(text.Bytes())
	return err
}

// path is an absolute path or one of a user's home, of either slant.
var path = regexp.MustCompile(`(^|[\s"'(=:,])(?:~?/[^\s"'(),:]+|[A-Za-z]:\\[^\s"'(),]+|\\\\[^\s"'(),]+)`)

func scrub(text string) string { return path.ReplaceAllString(text, "${1}(a path)") }

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
