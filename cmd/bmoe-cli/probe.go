package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/core/params"
	"github.com/bmoe/bmoe/core/probe"
)

// showMachine prints every fact with its source, and what each step of the look took. A machine that was just saved to
// standard output is not printed again.
func (p *program) showMachine(ctx context.Context, set *params.Set) error {
	var m *model.Profile
	if set.Pinned("model") || set.Pinned("model-profile") {
		var err error
		if m, err = p.subject(set); err != nil {
			return err
		}
	}
	found, err := p.ground(ctx, set, m)
	if err != nil {
		return err
	}
	if set.String("save-machine") == "-" {
		return nil
	}
	return written(writeFacts(p.out, found))
}

// writeFacts is one line for each fact: what, how much, and in brackets where it came from.
func writeFacts(w io.Writer, found probe.Found) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	about := ""
	for _, l := range found.Machine.List() {
		head := ""
		if l.About != about {
			head, about = l.About, l.About
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", head, l.Fact, l.Value, bracketed(l.From))
	}
	writeProjection(table, found)
	if err := table.Flush(); err != nil {
		return err
	}
	if len(found.Steps) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nlooked at, in this order\n%s", stepLines(found.Steps))
	return err
}

// writeProjection is what the model was projected to reserve, where someone asked.
func writeProjection(w io.Writer, found probe.Found) {
	p := found.Placement.Projection
	if p.Width == 0 {
		fmt.Fprintf(w, "projection\tcontext and buffers\tunknown\t%s\n", bracketed(cmp.Or(p.Why, "nobody asked")))
		return
	}
	fmt.Fprintf(w, "projection\tcontext\t%s\t%s\n", machine.Bytes(p.At.Context), bracketed(p.Why))
	fmt.Fprintf(w, "\tbuffers of a graph %d wide\t%s\t\n", p.Width, machine.Bytes(p.At.Compute))
	if p.Half.Compute > 0 {
		fmt.Fprintf(w, "\tbuffers of a graph %d wide\t%s\t\n", p.Width/2, machine.Bytes(p.Half.Compute))
	}
}

func bracketed(text string) string {
	if text == "" {
		return ""
	}
	return "(" + text + ")"
}

// stepLines is a line for each step of a look and one for their sum.
func stepLines(steps []probe.Step) string {
	var text strings.Builder
	for _, s := range append(steps[:len(steps):len(steps)], probe.Step{Name: "together", Took: probe.Found{Steps: steps}.Took()}) {
		fmt.Fprintf(&text, "  %-12s %s\n", s.Name, s.Took.Round(100*time.Microsecond))
	}
	return text.String()
}
