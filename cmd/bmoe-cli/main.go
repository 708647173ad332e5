// Command bmoe-cli answers a prompt with a Mixture-of-Experts model that may be larger than the machine's memory.
//
// It reads flags and prints: what a run needs is planned in core/plan and done in core/engine. The text goes to standard
// output and all else to standard error.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/bmoe/bmoe/core/engine"
	"github.com/bmoe/bmoe/core/history"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/core/params"
	"github.com/bmoe/bmoe/core/probe"
	"github.com/bmoe/bmoe/platform/state"
)

// patience is how long an interrupted run may take to end by itself.
const patience = 800 * time.Millisecond

func main() {
	cobra.MousetrapHelpText = "" // on Windows it would make a double click wait
	ctx, cancel := context.WithCancel(context.Background())
	signal.Ignore(syscall.SIGPIPE) // a reader that goes away is an error of the write, and the run ends in order
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		select {
		case <-signals:
			os.Exit(exitInterrupted)
		case <-time.After(patience): // something is under way that can't be ended, such as a write that nobody reads
		}
		time.AfterFunc(patience/10, func() { os.Exit(exitInterrupted) }) // nor may anybody read this
		fmt.Fprintln(os.Stderr, "interrupted")
		os.Exit(exitInterrupted)
	}()
	if handled, code := probe.Child(ctx, os.Args[1:], os.Stdout); handled {
		os.Exit(code)
	}
	p := &program{
		env:     os.LookupEnv,
		in:      os.Stdin,
		out:     os.Stdout,
		err:     os.Stderr,
		screen:  term.IsTerminal(int(os.Stdout.Fd())),
		bars:    term.IsTerminal(int(os.Stderr.Fd())),
		log:     slog.SetDefault,
		exit:    os.Exit,
		profile: model.Read,
		look: func(ctx context.Context, set *params.Set, r probe.Request) (probe.Found, error) {
			return probe.Here(engine.Libraries, again(set)).Look(ctx, r)
		},
		history: pastRuns(),
		can:     abilities,
		open: func(ctx context.Context, c engine.Config) (session, error) {
			return engine.Open(ctx, c)
		},
		natives: nativeLibrary{},
	}
	os.Exit(p.main(ctx, os.Args[1:]))
}

// pastRuns is the history of this user, or one that keeps nothing where there is no place for it.
func pastRuns() history.Log {
	dir, err := state.Dir("bmoe")
	if err != nil {
		return history.Log{}
	}
	return history.In(dir)
}
