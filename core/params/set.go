package params

import (
	"fmt"
	"time"
)

// Source is what set a value.
type Source int

const (
	FromDefault  Source = iota // nobody
	FromPlan                   // a plan
	FromVariable               // a BMOE_* variable
	FromFlag                   // a flag
)

// Set is a value for every parameter. The zero Set is not ready: see [New] and [Parse].
type Set struct {
	values map[string]setting
}

type setting struct {
	value  any
	source Source
}

// New is the set of the defaults.
func New() *Set {
	s := &Set{values: make(map[string]setting, len(rows))}
	for _, p := range rows {
		s.values[p.Name] = setting{value: p.zero()}
	}
	return s
}

// Clone is a set of its own with the same values and sources.
func (s *Set) Clone() *Set {
	c := &Set{values: make(map[string]setting, len(s.values))}
	for name, v := range s.values {
		c.values[name] = v
	}
	return c
}

// Put gives a parameter the value that text stands for. The error names the flag or variable of the source.
func (s *Set) Put(name, text string, source Source) error {
	p := must(name)
	v, err := p.parse(text)
	if err != nil {
		if source == FromVariable {
			return fmt.Errorf("%s: %w", p.Env(), err)
		}
		return fmt.Errorf("%s: %w", p.Flag(), err)
	}
	s.values[name] = setting{v, source}
	return nil
}

// Source says what set the parameter.
func (s *Set) Source(name string) Source { must(name); return s.values[name].source }

// Pinned says whether a person set the parameter, which no plan may then change.
func (s *Set) Pinned(name string) bool { return s.Source(name) >= FromVariable }

// Text is the value as typed. A Bool's is "on" or "off".
func (s *Set) Text(name string) string { return must(name).format(s.values[name].value) }

// Bool is the value of a Bool. This and the getters below panic for a parameter of another kind.
func (s *Set) Bool(name string) bool { return get[bool](s, name) }

// Int is the value of an Int or, in bytes, of a Size; [Auto] where it was left to be chosen.
func (s *Set) Int(name string) int64 { return get[int64](s, name) }

// Float is the value of a Float.
func (s *Set) Float(name string) float64 { return get[float64](s, name) }

// Duration is the value of a Duration.
func (s *Set) Duration(name string) time.Duration { return get[time.Duration](s, name) }

// String is the value of an Enum, a String or a Path.
func (s *Set) String(name string) string { return get[string](s, name) }

func get[T any](s *Set, name string) T { must(name); return s.values[name].value.(T) }

// typed is how the person spelled the parameter: its flag, or its variable.
func (s *Set) typed(name string) string {
	p := must(name)
	switch {
	case s.Source(name) == FromVariable:
		return p.Env()
	case p.Kind == Bool && !s.Bool(name):
		return "--no-" + p.Name
	}
	return p.Flag()
}

// reset takes a parameter back to its default.
func (s *Set) reset(name string) { s.values[name] = setting{value: must(name).zero()} }
