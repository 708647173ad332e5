// Package experts is the expert device: a ggml device, written in Go, that computes MUL_MAT_ID from a pool of slots which
// are filled from storage as tokens route to experts.
//
// A Store holds one session's slots, lanes and bookkeeping. Every graph of that session computes on one goroutine, which
// alone touches the bookkeeping; lanes only read into slots and say when they are done.
//
// The package must not know how large the cache should be, what a plan is, or which architecture the model has: it knows
// expert tensors by what the loader hands it.
package experts
