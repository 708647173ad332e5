// Package gates compares a streamed run with the plain resident run of the same libraries: every logit of every token,
// bit for bit. Nothing else in the project may be traded for a faster run while this holds the gate.
//
// A small set of cases runs with the other tests. BMOE_GATES=all runs a pairwise cover of every setting.
package gates
