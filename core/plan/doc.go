// Package plan decides how a model is run on a machine, and says why.
//
// [Make] is a pure function: from the machine's profile, the model's profile, the placement that was projected and what a
// person set by hand, to a plan. It measures nothing, reads no clock and no file, and asks about properties only: no
// operating system, vendor or backend is named here, and a test sees to that.
//
// Two things never give way. A knob whose deciding fact is missing keeps its default and is reported as unprobed. Nothing
// that changes the model's answer is ever turned on, and nothing a person set is ever changed.
//
// The plan is a list of stages over one state, each in a file of its name; the trades between them are priced by
// [allocate] in one unit, seconds per token.
package plan
