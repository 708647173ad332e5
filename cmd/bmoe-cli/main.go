// Command bmoe-cli answers a prompt with a Mixture-of-Experts model that may be larger than the machine's memory.
//
// It reads flags and prints: what a run needs is planned in core/plan and done in core/engine. The text goes to standard
// output and all else to standard error.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/bmoe/bmoe/core/engine"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/core/probe"
)

func main() {
	cobra.MousetrapHelpText = "" // on Windows it would make a double click wait
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(exitInterrupted)
	}()
	p := &program{
		env:     os.LookupEnv,
		in:      os.Stdin,
		out:     os.Stdout,
		err:     os.Stderr,
		screen:  term.IsTerminal(int(os.Stdout.Fd())),
		bars:    term.IsTerminal(int(os.Stderr.Fd())),
		log:     slog.SetDefault,
		profile: model.Read,
		machine: probe.Machine,
		open: func(ctx context.Context, c engine.Config) (session, error) {
			return engine.Open(ctx, c)
		},
		natives: nativeLibrary{},
	}
	os.Exit(p.main(ctx, os.Args[1:]))
}
