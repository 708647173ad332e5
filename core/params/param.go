package params

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is what a parameter's value is.
type Kind int

const (
	Bool     Kind = iota // bool
	Int                  // int64
	Size                 // int64, bytes
	Duration             // time.Duration
	Float                // float64
	Enum                 // string, one of Param.Choices
	String               // string, may be empty when typed
	Path                 // string, never empty when typed
)

// Scope is what a parameter bears on.
type Scope int

const (
	Run     Scope = iota // how the model is held and computed
	Request              // what is asked of the model
	Plan                 // whether and how the rest is chosen
	Output               // what is printed, and where
	Action               // something done in place of a run; has no variable and no place in a line
)

// Auto is the value of an Int or Size parameter that was left to be chosen.
const Auto = int64(-1)

const auto = "auto"

// Param is one row of the table.
type Param struct {
	Name    string   // the long flag, without dashes
	Short   string   // one letter, or ""
	Alias   string   // a further spelling of several letters behind one dash, as llama.cpp's tools have, or ""
	Group   string   // heading in the help
	Scope   Scope    //
	Kind    Kind     //
	Arg     string   // what stands for the value in the help; "" for a Bool
	Choices []string // of an Enum
	Auto    bool     // an Int or Size that may be "auto"
	Unit    int64    // of a Size without suffix, in bytes; 0: a suffix is required
	Min     float64  // least value of an Int, Size (bytes), Duration (seconds) or Float
	Max     float64  // greatest value, Min included
	Default string   // as typed and printed; "" only for a String or Path
	Help    string   // what it is for, in sentences; the default and range are added
	Lossy   bool     // changes what the model answers: only ever a person's choice
	Needs   []string // boolean parameters of which one must be on for this one to mean anything
}

// Env is the variable that sets the parameter, or "" for an Action.
func (p *Param) Env() string {
	if p.Scope == Action {
		return ""
	}
	return "BMOE_" + strings.ToUpper(p.Key())
}

// Key is the parameter's name in JSON.
func (p *Param) Key() string { return strings.ReplaceAll(p.Name, "-", "_") }

// Flag is the parameter as it is typed, "--io-threads".
func (p *Param) Flag() string { return "--" + p.Name }

// parse reads a value as typed. The error says what is wrong with the text and names no flag.
func (p *Param) parse(text string) (any, error) {
	if p.Auto && text == auto {
		return Auto, nil
	}
	switch p.Kind {
	case Bool:
		switch strings.ToLower(text) {
		case "1", "true", "on", "yes":
			return true, nil
		case "0", "false", "off", "no":
			return false, nil
		}
		return nil, fmt.Errorf("%q is neither on nor off", text)
	case Int:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			if p.Auto {
				return nil, fmt.Errorf(`%q is neither a whole number nor "auto"`, text)
			}
			return nil, fmt.Errorf("%q is not a whole number", text)
		}
		return n, p.within(float64(n))
	case Size:
		n, err := parseSize(text, p.Unit)
		if err != nil {
			return nil, err
		}
		return n, p.within(float64(n))
	case Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a duration such as 500ms or 2m30s", text)
		}
		return d, p.within(d.Seconds())
	case Float:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%q is not a number", text)
		}
		return f, p.within(f)
	case Enum:
		if !slices.Contains(p.Choices, text) {
			return nil, fmt.Errorf("%q is none of %s", text, strings.Join(p.Choices, ", "))
		}
	case Path:
		if text == "" {
			return nil, fmt.Errorf("the name of the file is empty")
		}
	}
	return text, nil
}

func (p *Param) within(v float64) error {
	if v >= p.Min && v <= p.Max {
		return nil
	}
	return fmt.Errorf("must be %s", p.span())
}

// span says the range in words: "at least 1", "1 to 64".
func (p *Param) span() string {
	number := func(v float64) string {
		switch {
		case v == 0:
			return "0"
		case p.Kind == Size:
			return formatSize(int64(v), 0)
		case p.Kind == Duration:
			return time.Duration(v * float64(time.Second)).String()
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	if p.Max >= math.MaxInt32 {
		return "at least " + number(p.Min)
	}
	return number(p.Min) + " to " + number(p.Max)
}

// format is parse's inverse.
func (p *Param) format(value any) string {
	if p.Auto && value == Auto {
		return auto
	}
	switch v := value.(type) {
	case bool:
		if v {
			return "on"
		}
		return "off"
	case int64:
		if p.Kind == Size {
			return formatSize(v, p.Unit)
		}
		return strconv.FormatInt(v, 10)
	case time.Duration:
		return v.String()
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return value.(string)
}

// zero is the value of the parameter before anyone set it.
func (p *Param) zero() any {
	if p.Default == "" {
		return ""
	}
	v, err := p.parse(p.Default)
	if err != nil {
		panic("params: default of " + p.Name + ": " + err.Error())
	}
	return v
}

// All is the table in the order of the help.
func All() []*Param { return slices.Clone(rows) }

// Lookup finds a row by the name of its flag.
func Lookup(name string) (*Param, bool) {
	p, ok := byName[name]
	return p, ok
}

// Flag spells a parameter's flag for a text: Flag("io-threads") is "--io-threads", and Flag("no-overlap") is
// "--no-overlap". A name that is not in the table panics, so a renamed flag fails a test and never misleads a person.
func Flag(name string) string {
	if _, ok := byName[name]; ok {
		return "--" + name
	}
	if positive, ok := strings.CutPrefix(name, "no-"); ok && must(positive).Kind == Bool {
		return "--" + name
	}
	panic("params: no flag --" + name)
}

func must(name string) *Param {
	p, ok := byName[name]
	if !ok {
		panic("params: no parameter " + name)
	}
	return p
}

// nearest is the flag that was most likely meant, or "".
func nearest(name string) string {
	best, distance := "", 3
	for _, p := range rows {
		for _, candidate := range p.spellings() {
			if d := edits(name, candidate); d < distance && d < len(name) {
				best, distance = candidate, d
			}
		}
	}
	return best
}

// spellings are the long flags a row answers to, without dashes.
func (p *Param) spellings() []string {
	if p.Kind == Bool {
		return []string{p.Name, "no-" + p.Name}
	}
	return []string{p.Name}
}

// edits is the Levenshtein distance of two short ASCII names.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
