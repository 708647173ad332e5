// Package params is the one table of run parameters. Every flag, BMOE_* variable, line of help and form field comes from
// a row of it, and so does every text that names a flag ([Flag]).
//
// A [Set] is the values of one run, each with what set it: a flag beats its variable, which beats the default, and what a
// person set is a pin that no plan may change. [Line] prints a set as the command line that reproduces it.
//
// It must not know what a value does: no files, no models, no machine.
package params
