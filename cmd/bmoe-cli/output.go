package main

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/bmoe/bmoe/core/engine"
	"github.com/bmoe/bmoe/core/params"
)

// field is a figure of one token: a member of a line of --progress and a column of --csv.
type field struct {
	name, meaning string
	column        func(engine.Token) string // nil: not in the table
}

var fields = []field{
	{"index", "which generated token this is, from 0", func(t engine.Token) string { return strconv.Itoa(t.Index) }},
	{"id", "its number in the model's vocabulary", func(t engine.Token) string { return strconv.Itoa(int(t.ID)) }},
	{"text", "the text that became complete with it, which may be empty (JSON only)", nil},
	{"elapsed_ns", "nanoseconds since the token before; for the first, since the prompt was begun", func(t engine.Token) string { return whole(int64(t.Elapsed)) }},
	{"hits", "expert slices that were in the cache", func(t engine.Token) string { return whole(t.Hits) }},
	{"misses", "expert slices that were read", func(t engine.Token) string { return whole(t.Misses) }},
	{"read_bytes", "bytes of experts read from storage", func(t engine.Token) string { return whole(t.ReadBytes) }},
	{"wait_ns", "nanoseconds the computation stood still for reads", func(t engine.Token) string { return whole(int64(t.Wait)) }},
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }

// printer writes tokens to standard output as they are made, each in one write.
type printer struct {
	out  io.Writer
	json *json.Encoder // nil: the text alone
	last string        // last text that was written
}

func (p *program) printer(lines bool) *printer {
	t := &printer{out: p.out}
	if lines {
		t.json = json.NewEncoder(p.out)
		t.json.SetEscapeHTML(false)
	}
	return t
}

func (t *printer) token(token engine.Token) error {
	var err error
	switch {
	case t.json != nil:
		err = t.json.Encode(token)
	case token.Text != "":
		_, err = io.WriteString(t.out, token.Text)
		t.last = token.Text
	}
	if err != nil {
		return fmt.Errorf("write to standard output: %w", err)
	}
	return nil
}

// endsLine says whether what follows begins on a line of its own.
func (t *printer) endsLine() bool { return t.last == "" || strings.HasSuffix(t.last, "\n") }

// table is the file of --csv. The nil table takes everything and writes nothing.
type table struct {
	file  *os.File
	csv   *csv.Writer
	isNew bool // the file was not there before
	begun bool
	end   int64 // where the header has room for how the plan ended; 0 where it has none
}

// unknownYet stands in the header until a plan's prediction can be held against a result. It is as wide as that gets.
var unknownYet = fmt.Sprintf("# plan: %-110s", "the run did not end")

// openTable makes sure that the file can be written before anything slow happens. An older file keeps its content until
// there is something to replace it with.
func openTable(path string) (*table, error) {
	if path == "" {
		return nil, nil
	}
	_, err := os.Lstat(path)
	isNew := errors.Is(err, fs.ErrNotExist)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, wrong("%s: %w", params.Flag("csv"), err)
	}
	return &table{file: f, csv: csv.NewWriter(f), isNew: isNew}, nil
}

// begin writes what the run is and the names of the columns.
func (t *table) begin(version, mode string, decisions []string) error {
	if t == nil {
		return nil
	}
	t.begun = true
	info, err := t.file.Stat()
	regular := err == nil && info.Mode().IsRegular()
	if regular {
		if err := t.file.Truncate(0); err != nil {
			return fmt.Errorf("%s: %w", params.Flag("csv"), err)
		}
	}
	var head strings.Builder
	fmt.Fprintf(&head, "# %s\n# %s\n", version, mode)
	for _, line := range decisions {
		fmt.Fprintf(&head, "# plan: %s\n", strings.TrimSpace(line))
	}
	if regular && len(decisions) > 0 {
		t.end = int64(head.Len())
		head.WriteString(unknownYet + "\n")
	}
	if _, err := t.file.WriteString(head.String()); err != nil {
		return fmt.Errorf("%s: %w", params.Flag("csv"), err)
	}
	var names []string
	for _, f := range fields {
		if f.column != nil {
			names = append(names, f.name)
		}
	}
	return t.write(names)
}

func (t *table) row(token engine.Token) error {
	if t == nil {
		return nil
	}
	var cells []string
	for _, f := range fields {
		if f.column != nil {
			cells = append(cells, f.column(token))
		}
	}
	return t.write(cells)
}

// outcome writes how the plan ended into the header, or, where that can't be written again, behind the rows.
func (t *table) outcome(text string) error {
	if t == nil || text == "" && t.end == 0 {
		return nil
	}
	text = cmp.Or(text, "nothing was predicted")
	line := fmt.Sprintf("%-*s", len(unknownYet), "# plan: "+text)
	var err error
	if t.end > 0 && len(line) == len(unknownYet) {
		_, err = t.file.WriteAt([]byte(line), t.end)
	} else {
		_, err = fmt.Fprintf(t.file, "# plan: %s\n", text)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", params.Flag("csv"), err)
	}
	return nil
}

// write puts one line into the file, not only into memory, so that the rows so far outlive whatever comes.
func (t *table) write(cells []string) error {
	err := t.csv.Write(cells)
	if err == nil {
		t.csv.Flush()
		err = t.csv.Error()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", params.Flag("csv"), err)
	}
	return nil
}

// close leaves no empty file behind where none was.
func (t *table) close() error {
	if t == nil {
		return nil
	}
	err := t.file.Close()
	if t.isNew && !t.begun {
		err = errors.Join(err, os.Remove(t.file.Name()))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", params.Flag("csv"), err)
	}
	return nil
}
