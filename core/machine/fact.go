package machine

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/bmoe/bmoe/core/profile"
)

// Fact is one thing about a machine. The zero Fact is unknown, which is an answer in its own right: a rule whose deciding
// fact is unknown keeps its default.
//
// A yes-or-no question is a Fact[bool] and so has three answers.
type Fact[T any] struct {
	value T
	known bool
	from  string
}

// Known is a fact with its value and where that came from, in words for a person.
func Known[T any](value T, from string) Fact[T] { return Fact[T]{value, true, from} }

// Unknown is a fact that could not be had; why says what stood in the way.
func Unknown[T any](why string) Fact[T] { return Fact[T]{from: why} }

// Yes and No are the known answers to a question.
func Yes(from string) Fact[bool] { return Known(true, from) }

// No is a known "no". What merely was not seen is [Unknown].
func No(from string) Fact[bool] { return Known(false, from) }

// Get is the value and whether it is known.
func (f Fact[T]) Get() (T, bool) { return f.value, f.known }

// Known says whether there is a value.
func (f Fact[T]) Known() bool { return f.known }

// Or is the value, or other where it is unknown.
func (f Fact[T]) Or(other T) T {
	if f.known {
		return f.value
	}
	return other
}

// From is where the value came from or, of an unknown fact, why there is none; "" where nobody said.
func (f Fact[T]) From() string { return f.from }

// IsYes says whether a question is known to be answered with yes.
func IsYes(f Fact[bool]) bool { return f.known && f.value }

// IsNo says whether a question is known to be answered with no. An unknown answer is neither.
func IsNo(f Fact[bool]) bool { return f.known && !f.value }

// written is a Fact in JSON: {"value":4096,"from":"..."}, and {"value":null,"from":"not probed"} where it is unknown.
type written[T any] struct {
	Value *T     `json:"value"`
	From  string `json:"from,omitempty"`
}

// MarshalJSON writes the value, or null for an unknown one, and where it came from.
func (f Fact[T]) MarshalJSON() ([]byte, error) {
	w := written[T]{From: f.from}
	if f.known {
		w.Value = &f.value
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON wrote. Null in place of the whole is the unknown fact.
func (f *Fact[T]) UnmarshalJSON(text []byte) error {
	var w written[T]
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&w); err != nil {
		return fmt.Errorf("a fact is written as {\"value\":...,\"from\":\"...\"}: %w", profile.Plainly(err))
	}
	*f = Fact[T]{from: w.From}
	if w.Value != nil {
		f.value, f.known = *w.Value, true
	}
	return nil
}
