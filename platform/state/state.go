// Package state answers: where may a program keep what it learnt from one run to the next?
//
// It must not know what is kept, nor make the directory.
package state

import "path/filepath"

// Dir is the directory for a program's state, for this user. It need not exist.
func Dir(program string) (string, error) {
	base, err := dir()
	if err != nil {
		return "", err
	}
	return filepath.Join(base, program), nil
}
