package params

import (
	"fmt"
	"io"
	"strings"
)

// column is where the text of a flag begins.
const column = 28

// Help writes the table in groups, width columns wide.
func Help(w io.Writer, width int) error {
	var b strings.Builder
	group := ""
	for _, p := range rows {
		if p.Group != group {
			group = p.Group
			fmt.Fprintf(&b, "\n%s:\n", group)
		}
		head := p.head()
		if len(head) > column-2 {
			fmt.Fprintf(&b, "%s\n%*s", head, column, "")
		} else {
			fmt.Fprintf(&b, "%-*s", column, head)
		}
		b.WriteString(Wrap(p.sentence(), width-column, column))
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, strings.TrimPrefix(b.String(), "\n"))
	return err
}

// Spelling is the flag with its other spellings and what stands for its value: "-m, --model FILE".
func (p *Param) Spelling() string { return strings.TrimSpace(p.head()) }

// Meaning is what the help says of the parameter.
func (p *Param) Meaning() string { return p.sentence() }

// head is the flag with its spellings and what stands for its value.
func (p *Param) head() string {
	var b strings.Builder
	switch {
	case p.Short != "":
		b.WriteString("  -" + p.Short + ", ")
	case p.Alias != "":
		b.WriteString("  -" + p.Alias + ", ")
	default:
		b.WriteString("      ")
	}
	b.WriteString("--")
	if p.Kind == Bool && p.Scope != Action {
		b.WriteString("[no-]")
	}
	b.WriteString(p.Name)
	if p.Arg != "" {
		b.WriteString(" " + p.Arg)
	}
	return b.String()
}

// sentence is the help with choices, range and default.
func (p *Param) sentence() string {
	var facts []string
	if p.Kind == Enum && !strings.Contains(p.Help, p.Choices[0]+",") {
		facts = append(facts, strings.Join(p.Choices, ", "))
	}
	switch p.Kind {
	case Int, Size, Duration, Float:
		facts = append(facts, p.span())
	}
	if p.Default != "" && p.Scope != Action {
		facts = append(facts, "default "+p.Default)
	}
	text := p.Help
	if p.Lossy {
		text += " Changes the answer."
	}
	if len(facts) > 0 {
		text += " (" + strings.Join(facts, "; ") + ")"
	}
	return text
}

// Wrap breaks a paragraph into lines of at most width characters, each after the first indented.
func Wrap(text string, width, indent int) string {
	var b strings.Builder
	used := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case used+1+len(word) > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			used = 0
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += len(word)
	}
	return b.String()
}
