package plan

import (
	"strings"

	"github.com/bmoe/bmoe/core/params"
)

// Decision is one line of a plan.
type Decision struct {
	Knob   string `json:"knob"`   // a parameter's name, or the kebab-case topic of a note
	Value  string `json:"value"`  // as typed; of a note, the number it turns on, or "-"
	Source Source `json:"source"` // what decided
	Reason string `json:"reason"` // the full account with its arithmetic
	Brief  string `json:"brief"`  // one plain sentence for a person
}

// Source is what decided.
type Source string

const (
	Measured   Source = "measured" // a fact of the machine
	Derived    Source = "derived"  // follows from facts
	FromPolicy Source = "policy"   // a figure of Policy
	Operator   Source = "operator" // a person
	Unprobed   Source = "unprobed" // nothing: the fact is missing, and the knob keeps its default
)

// decide sets a parameter and says why. What a person set stays; the line then says so, with what the plan would have done.
func (s *state) decide(knob, value string, source Source, reason, brief string) {
	d := Decision{knob, value, source, reason, brief}
	if s.byHand(knob) {
		d = s.pinned(knob, "set by hand")
		if value != d.Value && reason != "" {
			d.Reason += "; left to the plan it would be " + value + ": " + reason
		}
	} else if err := s.set.Put(knob, value, params.FromPlan); err != nil {
		panic("plan: " + err.Error()) // a value outside the table's range is a fault of a rule, and rapid looks for it
	}
	for i, earlier := range s.plan.Decisions {
		if earlier.Knob == knob { // a later stage found the earlier choice out of reach
			s.plan.Decisions[i] = d
			return
		}
	}
	s.plan.Decisions = append(s.plan.Decisions, d)
}

// byHand says whether a person chose the value. One who typed "auto" left it to be chosen.
func (s *state) byHand(knob string) bool { return s.set.Pinned(knob) && s.set.Text(knob) != "auto" }

func (s *state) pinned(knob, reason string) Decision {
	value := s.set.Text(knob)
	if value == "" {
		value = "none"
	}
	return Decision{knob, value, Operator, reason, "Set by hand"}
}

// keep reports a parameter that keeps its default because the fact behind it is missing.
func (s *state) keep(knob, reason, brief string) {
	s.decide(knob, s.set.Text(knob), Unprobed, reason, brief)
}

// note says something that no parameter stands for.
func (s *state) note(topic, value string, source Source, reason, brief string) {
	s.plan.Decisions = append(s.plan.Decisions, Decision{topic, value, source, reason, brief})
}

// sayPins lists what was set by hand and no stage spoke of.
func (s *state) sayPins() {
	said := map[string]bool{}
	for _, d := range s.plan.Decisions {
		said[d.Knob] = true
	}
	for _, p := range params.All() {
		if p.Scope == params.Run && p.Name != "model" && s.byHand(p.Name) && !said[p.Name] {
			d := s.pinned(p.Name, "set by hand")
			if p.Lossy {
				d.Reason = "set by hand: it changes what the model answers, which no plan does"
			}
			s.plan.Decisions = append(s.plan.Decisions, d)
		}
	}
}

// because joins the parts of a reason, leaving out the empty ones.
func because(parts ...string) string {
	kept := parts[:0:0]
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, "; ")
}

// from is the words for where a fact came from, in brackets, or nothing.
func from(where string) string {
	if where == "" {
		return ""
	}
	return " (" + where + ")"
}
