// Package synth writes Mixture-of-Experts models of random weights that an unmodified llama.cpp loads and runs: the
// models that tests, benchmarks and the demo work on, of any size and in several architectures and quantizations.
//
// It knows the GGUF format, the tensors each architecture wants and how to make random weights behave (finite logits,
// routing with a chosen locality, text that goes on). It must not know the engine, nor read a model back: what it writes
// is checked by readers that share no code with it.
//
// # How the weights are made
//
// The first 32 elements of the residual stream are an anchor: every token's embedding has 1 there and nothing that writes
// to the stream touches them (the rows of the attention output and of every down projection that would are zero). The
// anchor lets a weight matrix add a constant that does not depend on the token:
//   - a router row adds its expert's popularity along it, in another order in each layer: [Spec.Locality];
//   - an output row adds a bias, which keeps byte and control tokens, the end of the text among them, from being
//     generated.
//
// The rest of a token's embedding is random, and so is everything else, with two exceptions: the output row of each
// word token leans towards the embedding of one other token, so that following the likeliest token walks a cycle through
// all the words where a purely random model falls into a loop of a few tokens; and all scales are chosen so that a layer
// adds a bounded share to the stream.
package synth
