package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
)

// errGarbage is of a child whose output has no answer in it.
var errGarbage = errors.New("what it printed is no answer")

// lastAnswer is the last line of a child's output that is an answer of this kind, read strictly. A driver may print what it
// likes before and after, and even another's answer: accept says what is wrong with one that reads well.
func lastAnswer[T any](out []byte, accept func(T) error) (answer T, err error) {
	err = errGarbage
	lines := bytes.Split(out, []byte("\n"))
	for _, line := range slices.Backward(lines) {
		var a T
		strict := json.NewDecoder(bytes.NewReader(line))
		strict.DisallowUnknownFields()
		if strict.Decode(&a) != nil || strict.More() {
			continue
		}
		if wrong := accept(a); wrong != nil {
			err = wrong
			continue
		}
		return a, nil
	}
	return answer, err
}
