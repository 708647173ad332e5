// Command bench measures what bmoe promises and writes it down as a table: how fast streamed experts are beside plain
// llama.cpp, how near to what the drive and the processor allow, how little a load reads, and how much memory a run holds.
//
// Each measurement is a process of its own: this program starts itself with a job on standard input. One round takes every
// measurement once, and a figure is the median over the rounds, so that whatever else the machine does falls on all alike.
// It lies beside llama.cpp's libraries, as the product does; go tool mage bench puts it there.
//
// It must not know how the engine does what it measures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/bmoe/bmoe/ci/console"
)

// childArgument makes this program a child that does one job.
const childArgument = "child"

// Full runs have at least so many rounds and measured tokens; no other writes the page.
const (
	fullRounds = 5
	fullTokens = 64
)

const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var code int
	if len(os.Args) == 2 && os.Args[1] == childArgument {
		code = failed(child(ctx, os.Stdin, os.Stdout))
	} else {
		code = run(ctx, os.Args[1:], os.Stdout)
	}
	stop()
	os.Exit(code)
}

func failed(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitFailed
	}
	return 0
}

// options are what the flags say.
type options struct {
	folder string // where models are kept
	model  string // "": the calibrated one, in folder
	only   string // letters of the checks to make; "": all
	rounds int
	tokens int
	memory int64 // bytes that the confined runs may hold
	page   string
	strict bool
}

// full says whether the run's figures are worth keeping.
func (o options) full() bool {
	return o.only == "" && o.rounds >= fullRounds && o.tokens >= fullTokens
}

// wants says whether the check of a letter is made.
func (o options) wants(letter string) bool {
	return o.only == "" || strings.Contains(","+strings.ToUpper(o.only)+",", ","+letter+",")
}

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&o.folder, "folder", "", "`folder` where the models are kept, and written to where they are missing")
	flags.StringVar(&o.model, "model", "", "model `file` to measure; without it the calibrated one of 8 GB is written")
	flags.StringVar(&o.only, "only", "", "`letters` of the checks to make, such as A,C; without it all")
	flags.IntVar(&o.rounds, "rounds", fullRounds, "how often everything is measured")
	flags.IntVar(&o.tokens, "tokens", fullTokens, "how many tokens a measurement makes after its warm-up")
	memory := flags.Int64("memory", 3072, "`MiB` that the confined runs may hold")
	flags.StringVar(&o.page, "page", "", fmt.Sprintf("`file` for the page of results; only a run of all checks with %d rounds and %d tokens writes it", fullRounds, fullTokens))
	flags.BoolVar(&o.strict, "strict", false, "fail when a target is missed")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.memory = *memory << 20
	var wrong error
	switch {
	case flags.NArg() > 0:
		wrong = fmt.Errorf("what is %q for?", flags.Arg(0))
	case o.folder == "":
		wrong = errors.New("-folder says where the models are kept, and is missing")
	case o.rounds < 1 || o.tokens < 1 || o.memory <= 0:
		wrong = errors.New("rounds, tokens and memory are counts above 0")
	case o.tokens > contextLength-promptTokens-warmTokens-1:
		wrong = fmt.Errorf("at most %d tokens can be measured", contextLength-promptTokens-warmTokens-1)
	case o.only != "" && strings.Trim(strings.ToUpper(o.only), letters+",") != "":
		wrong = fmt.Errorf("the checks are %s, and %q names others", strings.Join(strings.Split(letters, ""), ", "), o.only)
	}
	if wrong != nil {
		fmt.Fprintln(usage, "bench:", wrong)
	}
	return o, wrong
}

func run(ctx context.Context, args []string, out io.Writer) int {
	o, err := parse(args, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return exitUsage
	}
	l, err := newLab(ctx, o)
	if err != nil {
		return failed(fmt.Errorf("bench: %w", err))
	}
	if err := l.work(ctx); err != nil {
		return failed(fmt.Errorf("bench: %w", err))
	}
	page := l.page()
	fmt.Fprint(out, page)
	if o.page != "" && o.full() {
		if err := os.WriteFile(o.page, []byte(page), 0o644); err != nil {
			return failed(fmt.Errorf("bench: %w", err))
		}
		console.Say("the results are in %s", o.page)
	} else if o.page != "" {
		console.Say("%s is left as it was: a page needs all checks, %d rounds and %d tokens", o.page, fullRounds, fullTokens)
	}
	return l.verdict(o.strict)
}

// verdict says which targets were missed. A measurement that a target needs and that could not be taken is a failure, a
// missed target only when strict.
func (l *lab) verdict(strict bool) int {
	code := 0
	for _, r := range l.results() {
		switch {
		case r.err != nil:
			console.Say("%s not measured: %s: %v", r.letter, r.what, r.err)
			if r.target > 0 {
				code = exitFailed
			}
		case !r.met():
			console.Say("%s missed: %s: %s, and the target is %s", r.letter, r.what, r.measured(), r.want(r.target))
			if strict {
				code = exitFailed
			}
		}
	}
	return code
}
