// Package backends is what bmoe knows about ggml's modules: which there are for a system, what a processor must offer for
// one to run, and how cmake is told to build it.
//
// It must not run a compiler, touch a file or know where built modules are kept: that is ci/llama's part.
package backends
