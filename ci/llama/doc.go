// Package llama gets the pinned llama.cpp, proves that it is the pinned one, builds it, and keeps what it built outside the
// checkout, so that the next checkout takes seconds.
//
// It must not patch llama.cpp, and must not know what a module is for: package backends lists them.
package llama
