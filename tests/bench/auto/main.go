// Command auto measures what a person gets who types --auto and nothing else: on a model larger than its memory, in control
// groups of several sizes, against the best that was found by setting the knobs by hand in the same run.
//
// It runs bmoe-cli as people do and reads what it prints and writes. It lies beside it; go tool mage bench:auto puts it there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/bmoe/bmoe/ci/console"
)

// A full run has all sizes and so many rounds and tokens; no other writes the page.
const (
	fullSizes  = "2048,3072,4096,6144,12288"
	fullRounds = 3
	fullTokens = 64
)

type options struct {
	model  string
	folder string
	page   string
	sizes  []int64 // bytes of the control groups
	rounds int
	tokens int
	strict bool
	full   bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:auto:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench:auto", flag.ContinueOnError)
	flags.StringVar(&o.folder, "folder", "", "`folder` where the model is kept, and written to where it is missing")
	flags.StringVar(&o.model, "model", "", "model `file` to run; without it the calibrated one of 8 GB is written")
	flags.StringVar(&o.page, "page", "", "`file` for the page of results; only a full run writes it")
	sizes := flags.String("memory", fullSizes, "`MiB` of the control groups, separated by commas")
	flags.IntVar(&o.rounds, "rounds", fullRounds, "how often everything is measured")
	flags.IntVar(&o.tokens, "tokens", fullTokens, "tokens that a run is measured over, after its warm-up")
	flags.BoolVar(&o.strict, "strict", false, "fail when a target is missed")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for _, word := range strings.Split(*sizes, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(word), 10, 64)
		if err != nil || n < 512 {
			return o, fmt.Errorf("-memory: %q is no number of MiB above 512", word)
		}
		o.sizes = append(o.sizes, n<<20)
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("what is %q for?", flags.Arg(0))
	case o.folder == "" && o.model == "":
		return o, errors.New("-folder says where the model is kept, and is missing")
	case o.rounds < 1 || o.tokens < 1:
		return o, errors.New("rounds and tokens are counts above 0")
	}
	o.full = *sizes == fullSizes && o.rounds >= fullRounds && o.tokens >= fullTokens
	return o, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	l, err := newLab(ctx, o)
	if err != nil {
		return err
	}
	defer l.close()
	for _, size := range o.sizes {
		if err := l.confine(ctx, size); err != nil {
			return err
		}
	}
	page, missed := l.report()
	fmt.Print(page)
	switch {
	case o.page != "" && o.full:
		if err := os.WriteFile(o.page, []byte(page), 0o644); err != nil {
			return err
		}
		console.Say("the results are in %s", o.page)
	case o.page != "":
		console.Say("%s is left as it was: a page needs groups of %s MiB, %d rounds and %d tokens", o.page, fullSizes, fullRounds, fullTokens)
	}
	if missed > 0 && o.strict {
		return fmt.Errorf("%d targets were missed", missed)
	}
	return nil
}
