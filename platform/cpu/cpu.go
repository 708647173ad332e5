// Package cpu answers: how many of the machine's cores may this process keep busy?
//
// It must not know what the threads do.
package cpu

import "fmt"

// Physical is how many physical cores this process may use: those that its affinity leaves it, two threads of one core
// counted once, and no more than the CPU time its control groups grant (a part of a core counts as one). It is at least
// 1, and where the system does not state its cores each logical CPU counts as one.
func Physical() int { return max(1, physical()) }

// Class is cores that are alike.
type Class struct {
	Count     int   // physical cores
	Frequency int64 // the highest, in Hz; 0 where the system does not state it
}

// Classes is the kinds of physical cores that this process's affinity leaves it, fastest first, and where that was read, for
// a person. An error is the reason why it is not known.
func Classes() (classes []Class, from string, err error) {
	classes, from, err = readClasses()
	if err != nil {
		return nil, "", fmt.Errorf("the kinds of cores are not known: %w", err)
	}
	return classes, from, nil
}
