package params

import (
	"fmt"
	"strings"
)

// rule is two parameters that cannot both be meant.
type rule struct {
	a, b string
	when func(*Set) bool // asked when a person set both
	why  string
}

var rules = append([]rule{
	{"prompt", "file", func(*Set) bool { return true },
		"a run has one prompt"},
	{"verbose", "log-level", func(s *Set) bool { return s.Bool("verbose") && s.String("log-level") != "debug" },
		"-v is the level debug"},
	{"cache-type-v", "flash-attn", func(s *Set) bool {
		return strings.Contains(s.String("cache-type-v"), "q") && s.String("flash-attn") == "off"
	}, "a quantized value cache needs flash attention"},
	{"cache-mb", "memory", func(s *Set) bool { return s.Int("memory") != Auto && s.Int("cache-mb") > s.Int("memory") },
		"the cache would be larger than all the memory the run may hold"},
}, needed()...)

// needed is a rule for every row that is about something which a person may have turned off.
func needed() []rule {
	var rules []rule
	for _, p := range rows {
		if len(p.Needs) > 0 {
			about := p.Needs[0]
			rules = append(rules, rule{about, p.Name,
				func(s *Set) bool { return !s.Bool(about) && s.asserts(p) },
				"one turns off what the other is about"})
		}
	}
	return rules
}

// agree refuses flags that contradict each other and flags that would silently do nothing. Where the choice is between a
// flag and a variable the flag is meant, and the variable is set aside.
func (s *Set) agree() error {
	for _, r := range rules {
		if !s.Pinned(r.a) || !s.Pinned(r.b) || !r.when(s) {
			continue
		}
		switch {
		case s.Source(r.a) == s.Source(r.b):
			return fmt.Errorf("%s and %s contradict each other: %s", s.typed(r.a), s.typed(r.b), r.why)
		case s.Source(r.a) == FromVariable:
			s.reset(r.a)
		default:
			s.reset(r.b)
		}
	}
	for _, p := range rows {
		switch {
		case s.has(p.Needs) || !s.asserts(p):
		case s.Source(p.Name) == FromFlag:
			return fmt.Errorf("%s does nothing without --%s", s.typed(p.Name), strings.Join(p.Needs, " or --"))
		case s.Source(p.Name) == FromVariable:
			s.reset(p.Name)
		}
	}
	return nil
}

// asserts says whether a person asked for something with the row: turning a switch off asks for nothing.
func (s *Set) asserts(p *Param) bool {
	return s.Pinned(p.Name) && (p.Kind != Bool || s.Bool(p.Name))
}

// has says whether one of the switches is on, or none is needed.
func (s *Set) has(needs []string) bool {
	for _, need := range needs {
		if s.Bool(need) {
			return true
		}
	}
	return len(needs) == 0
}

// temperature is what sampling starts from where a person asked for it by another flag than --temp.
const temperature = "0.8"

// sample turns sampling on where a person set one of its parameters but not the temperature.
func (s *Set) sample() {
	if s.Pinned("temp") {
		return
	}
	for _, p := range rows {
		if p.Group == groupSampling && s.Pinned(p.Name) {
			if err := s.Put("temp", temperature, FromDefault); err != nil {
				panic(err)
			}
			return
		}
	}
}
