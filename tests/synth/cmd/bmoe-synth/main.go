// Command bmoe-synth writes a model of random weights: a named one, or one of a size.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/bmoe/bmoe/tests/synth"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	flags := flag.NewFlagSet("bmoe-synth", flag.ContinueOnError)
	out := flags.String("o", "", "`file` to write")
	name := flags.String("model", "", "which model: "+strings.Join(synth.Presets(), ", "))
	size := flags.Int64("bytes", 0, "a model of about this many `bytes` instead of a named one")
	locality := flags.Float64("locality", -1, "another routing locality: 0 routes all experts alike")
	seed := flags.Uint64("seed", 0, "another seed")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: bmoe-synth -o FILE (-model NAME | -bytes N)")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if *out == "" || (*name == "") == (*size == 0) || flags.NArg() > 0 {
		flags.Usage()
		return 2
	}
	spec := synth.Sized(*size)
	if *name != "" {
		var err error
		if spec, err = synth.Named(*name); err != nil {
			fmt.Fprintln(os.Stderr, "bmoe-synth:", err)
			return 2
		}
	}
	if *locality >= 0 {
		spec.Locality = *locality
	}
	if *seed != 0 {
		spec.Seed = *seed
	}
	shown := int64(-1)
	paths, err := synth.Write(ctx, *out, spec, func(written, total int64) {
		if percent := written * 100 / total; percent != shown {
			shown = percent
			fmt.Fprintf(os.Stderr, "\r%3d%% of %d MiB", percent, total>>20)
		}
	})
	fmt.Fprintln(os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bmoe-synth:", err)
		return 1
	}
	for _, path := range paths {
		fmt.Println(path)
	}
	return 0
}
