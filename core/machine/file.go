package machine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"
	"unicode"

	"github.com/bmoe/bmoe/core/profile"
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
	clean := Scrub(*p)
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
	d := document{Profile: new(Profile)}
	if err := profile.Decode(r, "machine", Version, maxJSON, &d); err != nil {
		return nil, err
	}
	*d.Profile = Scrub(*d.Profile) // whoever wrote it, its texts are printed
	if err := d.Check(); err != nil {
		return nil, fmt.Errorf("contradictory machine profile: %w", err)
	}
	return d.Profile, nil
}

// Save writes the profile to a file, which is there whole or not at all. To what is no regular file, a pipe or a terminal,
// it is just written.
func (p *Profile) Save(path string) error { return profile.Save(path, p.Encode) }

// Load reads a profile from a file. Its error names the file.
func Load(path string) (*Profile, error) { return profile.Load(path, Decode) }

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

// Scrub is a copy of what anybody may have written, a driver or a file, with every text in it fit to be printed and given
// away: without what a terminal would obey, and without paths.
func Scrub[T any](v T) T { return scrubbed(reflect.ValueOf(v)).Interface().(T) }

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
