package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"github.com/bmoe/bmoe/core/engine"
)

// job is what a child process is to do: one of these.
type job struct {
	Drive    *drive    `json:",omitempty"`
	Generate *generate `json:",omitempty"`
}

// outcome is what a child found. Sizes are bytes.
type outcome struct {
	Rates []rate `json:",omitempty"` // of a drive job

	// Of a generate job.
	Report  engine.Report
	Loaded  int64        // read from storage between the start of the process and its first graph; below 0 if the system does not tell
	Prefill engine.Phase // of the last pass
	Needed  int64        // of the distinct slices that the prompt asked for; 0 unless there were several passes
	Decode  stretch
	Text    []int32 // tokens made in the last pass

	GroupPeak int64 // the most that the control group held; 0 outside of one. The parent fills it in
}

// rate is what a number of lanes reads from the drive.
type rate struct {
	Lanes     int
	PerSecond float64 // bytes
}

// stretch is the measured tokens of a generation.
type stretch struct {
	Tokens  int
	Elapsed time.Duration
	engine.Cost
	Compute time.Duration // in expert matmuls
}

func (s stretch) perSecond() float64 { return float64(s.Tokens) / s.Elapsed.Seconds() }

// missed is the share of the slices asked for that had to be read.
func (s stretch) missed() float64 {
	if s.Hits+s.Misses == 0 {
		return 0
	}
	return float64(s.Misses) / float64(s.Hits+s.Misses)
}

// child does the one job that in holds and writes the outcome to out. It ends with its parent: in stays open as long as that
// lives.
func child(ctx context.Context, in io.Reader, out io.Writer) error {
	var j job
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, in) // whatever ends it, the parent is gone
		os.Exit(1)
	}()
	var o outcome
	var err error
	switch {
	case j.Drive != nil:
		o, err = j.Drive.run()
	case j.Generate != nil:
		o, err = j.Generate.run(ctx)
	default:
		err = errors.New("the job says nothing to do")
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(o)
}
