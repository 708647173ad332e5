// Package machine is a machine's profile: what there is to know about a machine for planning a run on it. Every fact may
// be unknown.
//
// It must not ask the machine anything: core/probe fills it.
package machine

// Profile is a machine as one process sees it.
type Profile struct {
	// Holdable is the memory this process may hold, in bytes; 0: unknown. HoldableFrom says in words which figure that is.
	Holdable     int64  `json:"holdable"`
	HoldableFrom string `json:"holdable_from,omitempty"`
}
