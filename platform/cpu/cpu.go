// Package cpu answers: how many of the machine's cores may this process keep busy?
//
// It must not know what the threads do.
package cpu

// Physical is how many physical cores this process may use: those that its affinity leaves it, two threads of one core
// counted once, and no more than the CPU time its control groups grant (a part of a core counts as one). It is at least
// 1, and where the system does not state its cores each logical CPU counts as one.
func Physical() int { return max(1, physical()) }
