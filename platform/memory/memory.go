// Package memory answers: how much memory does this system have, and how much more may this process hold?
//
// It must not know what the memory is for, nor keep any margin.
package memory

import "fmt"

// Facts is one reading. The figures move while other processes run. Sizes are bytes.
type Facts struct {
	Total     int64  // physical memory of the system
	Available int64  // what this process may still hold: the least of what the system and each of its limits leave
	Limit     int64  // the tightest limit on this process, or on a group it is in; 0 when there is none
	Why       string // which figure decided Available, for people
}

// Read takes a reading now. It costs some tens of microseconds.
func Read() (Facts, error) {
	f, err := read()
	if err != nil {
		return Facts{}, fmt.Errorf("read how much memory there is: %w", err)
	}
	return f, nil
}
