// Package llama is the binding to libllama and libggml: the structs and calls the engine uses, and no others.
//
// It opens the libraries from one directory, loads the compute modules beside them, and mirrors the few C structs that
// cross the border. It must not know what an expert cache, a plan or a command line is.
//
// Handles are uintptr: they point into memory owned by the libraries, which the garbage collector neither moves nor frees.
package llama
