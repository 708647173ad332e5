package main

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// bar shows how far loading is. The nil bar shows nothing.
type bar struct{ shown *progressbar.ProgressBar }

// grain is how finely a bar moves.
const grain = 1000

// newBar is a bar on a terminal, and no bar elsewhere.
func newBar(w io.Writer, terminal bool) *bar {
	if !terminal {
		return nil
	}
	return &bar{progressbar.NewOptions(grain,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetWidth(30),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionThrottle(50*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)}
}

// step moves the bar. It may be called from any goroutine. An error would be one of the terminal, and concerns no run.
func (b *bar) step(name string, fraction float64) {
	if b == nil {
		return
	}
	b.shown.Describe(name)
	_ = b.shown.Set(int(grain * min(max(fraction, 0), 1)))
}

// close takes the bar off the screen.
func (b *bar) close() {
	if b != nil {
		_ = b.shown.Finish()
		_ = b.shown.Clear()
	}
}
