package main

import (
	"io"
	"strings"

	"github.com/bmoe/bmoe/core/params"
)

// manual prints the description as a page for man. It has no date and no version: the same flags make the same page.
func manual(w io.Writer) error {
	m := &roff{}
	m.WriteString(".TH BMOE\\-CLI 1 \"\" bmoe \"User commands\"\n")
	m.section("Name")
	m.WriteString("bmoe\\-cli \\- " + escaped(summary) + "\n")
	m.section("Description")
	m.paragraph("Of the model, " + how)
	describe(m)
	_, err := io.WriteString(w, m.String())
	return err
}

// roff is a sheet for man.
type roff struct{ strings.Builder }

func (m *roff) section(name string)   { m.WriteString(".SH " + escaped(strings.ToUpper(name)) + "\n") }
func (m *roff) paragraph(said string) { m.WriteString(".PP\n" + escaped(said) + "\n") }
func (m *roff) line(said string)      { m.WriteString(".br\n" + escaped(said) + "\n") }

func (m *roff) term(name, said string) {
	m.WriteString(".TP\n.B " + escaped(name) + "\n" + escaped(said) + "\n")
}

func (m *roff) flags() {
	group := ""
	for _, p := range params.All() {
		if p.Group != group {
			group = p.Group
			m.section(group)
		}
		m.term(p.Spelling(), p.Meaning())
	}
}

// escaped is text that roff prints as it is: a dash as one that can be searched for and pasted, and no line taken for a request.
func escaped(said string) string {
	said = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(said)
	if strings.HasPrefix(said, ".") || strings.HasPrefix(said, "'") {
		said = `\&` + said
	}
	return said
}
