package plan

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Style is how a page is laid out.
type Style struct {
	Columns int  // of the terminal; 0: 80
	Color   bool // escape sequences for colour
	Full    bool // every decision's full reason in place of the brief sentence
}

// Line is a decision on one line, for a pipe or a log.
func (d Decision) Line(full bool) string {
	return fmt.Sprintf("  %s = %s  [%s]  %s", d.Knob, d.Value, d.Source, d.said(full))
}

func (d Decision) said(full bool) string {
	if full {
		return d.Reason
	}
	return d.Brief
}

// WritePage writes a plan for a person at a terminal: machine and model, the memory as a table, what was decided, and what
// to expect.
func (p *Plan) WritePage(w io.Writer, style Style) error {
	if style.Columns <= 0 {
		style.Columns = 80
	}
	page := page{style: style}
	page.heading("Plan")
	page.entry("machine", p.Machine)
	page.entry("model", fmt.Sprintf("%s: %s of experts, %s that every token needs", p.Model, size(p.Figures.Experts), size(p.Figures.Dense)))
	page.entry("regime", p.sentence("regime"))
	page.entry("outcome", strings.ReplaceAll(string(p.Outcome), "-", " "))
	page.entry("expect", p.expectation())
	page.ledger(p.Ledger)
	page.heading("Decisions")
	for _, d := range p.Decisions {
		page.decision(d)
	}
	_, err := io.WriteString(w, page.text.String())
	return err
}

func (p *Plan) sentence(knob string) string {
	for _, d := range p.Decisions {
		if d.Knob == knob {
			return d.Brief
		}
	}
	return "-"
}

func (p *Plan) expectation() string {
	if !p.Prediction.Known {
		return "not predicted: it is owed " + p.Prediction.Missing
	}
	text := fmt.Sprintf("%s (%s per token)", pace(1/p.Prediction.PerToken), took(p.Prediction.PerToken))
	text += fmt.Sprintf("; no faster than %s", pace(1/p.Prediction.Fastest))
	if p.Prediction.Bound > 0 {
		text += fmt.Sprintf("; %s with the file left mapped and nothing held", pace(1/p.Prediction.Bound))
	}
	return text
}

// page is a page being written.
type page struct {
	style Style
	text  strings.Builder
}

// Colours, as the terminal spells them.
const (
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
	plain  = "\x1b[0m"
)

var sourceColor = map[Source]string{Measured: green, Derived: green, FromPolicy: cyan, Operator: bold, Unprobed: yellow}

func (p *page) color(code, text string) string {
	if !p.style.Color {
		return text
	}
	return code + text + plain
}

func (p *page) heading(text string) {
	if p.text.Len() > 0 {
		p.text.WriteByte('\n')
	}
	p.text.WriteString(p.color(bold, text) + "\n")
}

// entry is a word and what there is to say about it.
func (p *page) entry(word, text string) {
	lines := wrap(text, p.style.Columns-13)
	for i, line := range lines {
		if i > 0 {
			word = ""
		}
		fmt.Fprintf(&p.text, "  %-9s  %s\n", word, line)
	}
}

// ledger is the account as a table under its two ceilings.
func (p *page) ledger(l Ledger) {
	p.heading("Memory")
	row := func(name, held, exempt, remark string) {
		p.text.WriteString(strings.TrimRight(fmt.Sprintf("  %-18s %10s %10s  %s", name, held, exempt, remark), " ") + "\n")
	}
	row("", "held", "exempt", "")
	for _, r := range l.Rows {
		remark := map[Kind]string{Room: "left free for its pages", InTurn: "in turn with the cache"}[r.Kind]
		switch {
		case r.ByHand:
			remark = strings.TrimSpace("set by hand " + remark)
		case r.Asked:
			remark = "a lock is asked for"
		}
		row(r.Name, size(r.Bytes), orDash(r.Exempt), remark)
	}
	held, exempt := l.Total()
	row("together", size(held), orDash(exempt), "")
	row("of", ceiling(l.Holdable), ceiling(l.Exempt), "")
}

func orDash(bytes int64) string {
	if bytes == 0 {
		return "-"
	}
	return size(bytes)
}

func ceiling(c Ceiling) string {
	if !c.Known {
		return "unmeasured"
	}
	return size(c.Bytes)
}

// decision is one line, broken where it must be.
func (p *page) decision(d Decision) {
	head := fmt.Sprintf("  %-23s %-9s", d.Knob, d.Value)
	tag := "[" + string(d.Source) + "]"
	fmt.Fprintf(&p.text, "%s %s\n", p.color(bold, clip(head, p.style.Columns-len(tag)-1)), p.color(sourceColor[d.Source], tag))
	for _, line := range wrap(d.said(p.style.Full), p.style.Columns-6) {
		fmt.Fprintf(&p.text, "      %s\n", p.color(dim, line))
	}
}

// clip cuts a head that is wider than its place, which a value such as a list of patterns may be.
func clip(text string, columns int) string {
	if utf8.RuneCountInString(text) <= columns {
		return text
	}
	runes := []rune(text)
	return string(runes[:columns-1]) + "…"
}

// wrap breaks text between words, and a word that is wider than a line within it.
func wrap(text string, columns int) []string {
	columns = max(columns, 20)
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		for utf8.RuneCountInString(word) > columns {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			runes := []rune(word)
			lines, word = append(lines, string(runes[:columns])), string(runes[columns:])
		}
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= columns:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}
