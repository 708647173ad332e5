// Package console is how the build talks to the person who started it: what it is doing, and how far it is.
//
// It must not know what the steps are. Everything goes to stderr; stdout belongs to the programs that are run.
package console

import (
	"fmt"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Say prints one line about what is being done.
func Say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "==> "+format+"\n", args...)
}

// Bar shows how far a step is: a bar on a terminal, a line at every fourth elsewhere, so that a log stays readable.
type Bar struct {
	label   string
	total   int64
	bar     *progressbar.ProgressBar // nil where there is no terminal
	quarter int64
	start   time.Time
}

// Start begins a step of total units; bytes says that the units are bytes.
func Start(label string, total int64, bytes bool) *Bar {
	b := &Bar{label: label, total: max(total, 1), start: time.Now()}
	if term.IsTerminal(int(os.Stderr.Fd())) {
		b.bar = progressbar.NewOptions64(b.total,
			progressbar.OptionSetDescription(label),
			progressbar.OptionSetWriter(os.Stderr),
			progressbar.OptionShowBytes(bytes),
			progressbar.OptionSetWidth(30),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
		)
	}
	return b
}

// Set tells how many units are done.
func (b *Bar) Set(done int64) {
	done = min(done, b.total)
	if b.bar != nil {
		_ = b.bar.Set64(done) // a bar that cannot be drawn is no reason to stop a build
		return
	}
	if quarter := done * 4 / b.total; quarter > b.quarter {
		b.quarter = quarter
		Say("%s: %d %%", b.label, quarter*25)
	}
}

// Done ends the step and says how long it took.
func (b *Bar) Done() {
	b.end()
	Say("%s: done in %s", b.label, time.Since(b.start).Round(100*time.Millisecond))
}

// Failed ends the step without a word; the error speaks.
func (b *Bar) Failed() { b.end() }

func (b *Bar) end() {
	if b.bar != nil {
		_ = b.bar.Clear()
	}
}
