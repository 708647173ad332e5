package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/bmoe/bmoe/core/params"
)

// columns is how wide the help is.
const columns = 80

// sheet is what the description of the command is written on: plain text for a terminal, or a manual page.
type sheet interface {
	section(name string)
	paragraph(text string)
	term(name, text string) // a name and what it means, in a list
	line(text string)       // as it is
	flags()                 // the table of parameters, in its groups
}

const summary = "answers a prompt with a Mixture-of-Experts model, also one that is larger than this machine's memory"

// describe writes everything there is to know about the command.
func describe(s sheet) {
	s.section("Usage")
	s.line("bmoe-cli -m MODEL.gguf -p TEXT --auto")
	s.line("bmoe-cli -m MODEL.gguf -f FILE [flags]")
	s.flags()

	s.section("Modes")
	s.paragraph(fmt.Sprintf("Without %s and without %s a run is plain llama.cpp on the mapped file, and its first line says so. "+
		"%s streams with the defaults above. %s decides whether to stream and with what, and prints a line for each decision: the "+
		"parameter, its value, what it rests on (measured, derived, policy, operator, unprobed) and why. What is set by hand is never changed.",
		params.Flag("auto"), params.Flag("moe-stream"), params.Flag("moe-stream"), params.Flag("auto")))
	s.section("What goes where")
	s.paragraph("The generated text, and nothing else, goes to standard output as it is made. The mode, the plan, the progress of loading " +
		"(on a terminal) and the report at the end go to standard error.")
	s.section("Fields of " + params.Flag("progress") + " and columns of " + params.Flag("csv"))
	for _, f := range fields {
		s.term(f.name, f.meaning)
	}
	s.paragraph(fmt.Sprintf("Lines of the file of %s that begin with # say what wrote it, the mode of the run, and the plan, its prediction held against the result, if there was one; "+
		"then come the names of the columns, and each row as its token is made.", params.Flag("csv")))
	s.section("Environment")
	s.paragraph(fmt.Sprintf("Every flag but the last group's has a variable: BMOE_ and its long name in capitals with _ for -, such as %s for %s. "+
		"A switch is on, off, 1 or 0. A flag beats its variable, which beats the default.", variable("cache-mb"), params.Flag("cache-mb")))
	s.section("Sizes")
	s.paragraph("3GiB and 3G are the same, 1024 times 1024 times 1024 bytes each; so are MiB and M, KiB and K. GB, MB and KB are powers of 1000.")
	s.section("Exit status")
	s.line("0    done")
	s.line("1    failed while running")
	s.line("2    wrong flags or bad input")
	s.line("130  interrupted; a second interrupt ends the program at once")
	s.section("Examples")
	s.line("bmoe-cli -m model.gguf --auto -p 'Why is the sky blue?'")
	s.line("bmoe-cli -m model.gguf --auto --plan-explain --memory 8G -f question.txt")
	s.line("bmoe-cli -m model.gguf --moe-stream --cache-mb 4000 --csv run.csv -p Hello")
}

// help prints the description as text.
func help(w io.Writer) error {
	t := &text{}
	t.WriteString(params.Wrap("bmoe-cli "+summary+": "+how, columns, 0) + "\n")
	describe(t)
	_, err := io.WriteString(w, t.String())
	return err
}

const how = "what every token needs is held in memory, and the experts a token is routed to are read from storage when they are needed. " +
	"The answer is the model's own."

// text is a sheet for a terminal.
type text struct{ strings.Builder }

func (t *text) section(name string)   { t.WriteString("\n" + name + ":\n") }
func (t *text) paragraph(said string) { t.line(params.Wrap(said, columns-2, 2)) }
func (t *text) line(said string)      { t.WriteString("  " + said + "\n") }

func (t *text) term(name, said string) {
	t.line(fmt.Sprintf("%-12s%s", name, params.Wrap(said, columns-14, 14)))
}

func (t *text) flags() {
	t.WriteByte('\n')
	_ = params.Help(t, columns) // a builder takes all
}

func variable(name string) string {
	p, _ := params.Lookup(name)
	return p.Env()
}
