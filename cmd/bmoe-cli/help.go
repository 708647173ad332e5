package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/bmoe/bmoe/core/params"
)

// columns is how wide the help is.
const columns = 80

// help prints everything there is to know about the command.
func help(w io.Writer) error {
	var b strings.Builder
	paragraph := func(text string) { b.WriteString("  " + params.Wrap(text, columns-2, 2) + "\n") }
	section := func(name string) { b.WriteString("\n" + name + ":\n") }

	b.WriteString(params.Wrap("bmoe-cli answers a prompt with a Mixture-of-Experts model, also one that is larger than this machine's memory: "+
		"what every token needs is held in memory, and the experts a token is routed to are read from storage when they are needed. "+
		"The answer is the model's own.", columns, 0) + "\n")
	section("Usage")
	b.WriteString("  bmoe-cli -m MODEL.gguf -p TEXT --auto\n  bmoe-cli -m MODEL.gguf -f FILE [flags]\n")
	b.WriteString("\n")
	if err := params.Help(&b, columns); err != nil {
		return err
	}

	section("Modes")
	paragraph(fmt.Sprintf("Without %s and without %s a run is plain llama.cpp on the mapped file, and its first line says so. "+
		"%s streams with the defaults above. %s decides whether to stream and with what, and prints a line for each decision: the "+
		"parameter, its value, what it rests on (measured, derived, policy, operator, unprobed) and why. What is set by hand is never changed.",
		params.Flag("auto"), params.Flag("moe-stream"), params.Flag("moe-stream"), params.Flag("auto")))
	section("What goes where")
	paragraph("The generated text, and nothing else, goes to standard output as it is made. The mode, the plan, the progress of loading " +
		"(on a terminal) and the report at the end go to standard error.")
	section("Fields of " + params.Flag("progress") + " and columns of " + params.Flag("csv"))
	for _, f := range fields {
		fmt.Fprintf(&b, "  %-12s%s\n", f.name, params.Wrap(f.meaning, columns-14, 14))
	}
	paragraph(fmt.Sprintf("Lines of the file of %s that begin with # say what wrote it, the mode of the run, and the plan, its prediction held against the result, if there was one; "+
		"then come the names of the columns, and each row as its token is made.", params.Flag("csv")))
	section("Environment")
	paragraph(fmt.Sprintf("Every flag but the last group's has a variable: BMOE_ and its long name in capitals with _ for -, such as %s for %s. "+
		"A switch is on, off, 1 or 0. A flag beats its variable, which beats the default.", variable("cache-mb"), params.Flag("cache-mb")))
	section("Sizes")
	paragraph("3GiB and 3G are the same, 1024 times 1024 times 1024 bytes each; so are MiB and M, KiB and K. GB, MB and KB are powers of 1000.")
	section("Exit status")
	b.WriteString("  0    done\n  1    failed while running\n  2    wrong flags or bad input\n  130  interrupted; a second interrupt ends the program at once\n")
	section("Examples")
	b.WriteString("  bmoe-cli -m model.gguf --auto -p 'Why is the sky blue?'\n" +
		"  bmoe-cli -m model.gguf --auto --plan-explain --memory 8G -f question.txt\n" +
		"  bmoe-cli -m model.gguf --moe-stream --cache-mb 4000 --csv run.csv -p Hello\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func variable(name string) string {
	p, _ := params.Lookup(name)
	return p.Env()
}
