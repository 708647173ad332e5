package params

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Parse reads a command line, without the program's name, and the environment. Every error is one line for the person
// who typed it.
func Parse(args []string, env func(name string) (string, bool)) (*Set, error) {
	s := New()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.Usage = func() {}
	s.Register(flags)
	if err := flags.Parse(Normalize(args)); err != nil {
		return nil, Explain(err)
	}
	if flags.NArg() > 0 {
		return nil, Stray(flags.Arg(0))
	}
	if err := s.Finish(env); err != nil {
		return nil, err
	}
	return s, nil
}

// Normalize rewrites every flag to its long form with the value attached, "-ctk q8_0" to "--cache-type-k=q8_0", so that a
// parser for one-letter short flags reads it. What is not a flag of the table stays as it is.
func Normalize(args []string) []string {
	out := make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return append(out, args[i:]...)
		}
		name, value, attached := strings.Cut(arg, "=")
		p := named(name)
		switch {
		case p == nil:
			out = append(out, arg)
		case p.Kind == Bool && name == p.Flag():
			out = append(out, arg)
		case p.Kind == Bool && attached:
			out = append(out, p.Flag()+"="+value)
		case p.Kind == Bool:
			out = append(out, p.Flag())
		case attached:
			out = append(out, p.Flag()+"="+value)
		case i+1 < len(args):
			i++
			out = append(out, p.Flag()+"="+args[i])
		default:
			out = append(out, p.Flag())
		}
	}
	return out
}

// named finds the row that a flag as typed belongs to, dashes and all.
func named(flag string) *Param {
	for _, p := range rows {
		switch flag {
		case "--" + p.Name:
			return p
		case "-" + p.Short, "-" + p.Alias, "--" + p.Alias:
			if len(strings.TrimLeft(flag, "-")) > 0 {
				return p
			}
		}
	}
	return nil
}

// Register defines a flag for every row, and --no-x for every boolean --x.
func (s *Set) Register(flags *pflag.FlagSet) {
	flags.SortFlags = false
	for _, p := range rows {
		f := flags.VarPF(&flagValue{set: s, param: p}, p.Name, p.Short, p.Help)
		if p.Kind != Bool {
			continue
		}
		f.NoOptDefVal = "on"
		no := flags.VarPF(&flagValue{set: s, param: p, inverted: true}, "no-"+p.Name, "", "Not --"+p.Name+".")
		no.NoOptDefVal = "on"
		no.Hidden = true
	}
}

// flagValue is a row as pflag sees it.
type flagValue struct {
	set      *Set
	param    *Param
	inverted bool
}

// Set refuses a second value that differs from the first: one of the two was not meant. Defaults for every run belong in
// the environment.
func (v *flagValue) Set(text string) error {
	was := v.set.values[v.param.Name]
	if v.inverted {
		on, err := v.param.parse(text)
		if err != nil {
			return fmt.Errorf("--no-%s: %w", v.param.Name, err)
		}
		text = v.param.format(!on.(bool))
	}
	if err := v.set.Put(v.param.Name, text, FromFlag); err != nil {
		return err
	}
	now := v.set.values[v.param.Name]
	if was.source != FromFlag || was.value == now.value {
		return nil
	}
	if v.param.Kind == Bool {
		return fmt.Errorf("--%s and --no-%s contradict each other", v.param.Name, v.param.Name)
	}
	return fmt.Errorf("%s is given twice, as %q and as %q", v.param.Flag(), v.param.format(was.value), v.param.format(now.value))
}

func (v *flagValue) String() string {
	if v.param == nil { // pflag asks a zero value for its default
		return ""
	}
	if v.param.Kind == Bool {
		return strconv.FormatBool(v.set.Bool(v.param.Name))
	}
	return v.set.Text(v.param.Name)
}

// Type is what pflag's own getters know a value by.
func (v *flagValue) Type() string {
	if v.param.Kind == Bool {
		return "bool"
	}
	return v.param.Arg
}

// Explain turns an error of pflag into one line for the person who typed the flag.
func Explain(err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return invalid.Unwrap()
	}
	var value *pflag.ValueRequiredError
	if errors.As(err, &value) {
		return fmt.Errorf("--%s needs a value", value.GetFlag().Name)
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		flag := "--" + unknown.GetSpecifiedName()
		if shorts := unknown.GetSpecifiedShortnames(); shorts != "" {
			flag = "-" + shorts
		}
		if near := nearest(strings.TrimLeft(flag, "-")); near != "" {
			return fmt.Errorf("there is no flag %s: did you mean --%s?", flag, near)
		}
		return fmt.Errorf("there is no flag %s: %s lists them", flag, Flag("help"))
	}
	return err
}

// Stray is the error of an argument that is not a flag.
func Stray(arg string) error {
	return fmt.Errorf("%q is not a flag: the model is given with -m, the prompt with -p", arg)
}

// Finish takes from the environment what no flag set, and refuses what contradicts itself.
func (s *Set) Finish(env func(name string) (string, bool)) error {
	for _, p := range rows {
		if p.Scope == Action || s.Source(p.Name) == FromFlag {
			continue
		}
		if text, ok := env(p.Env()); ok && text != "" {
			if err := s.Put(p.Name, text, FromVariable); err != nil {
				return err
			}
		}
	}
	if err := s.agree(); err != nil {
		return err
	}
	s.sample()
	return nil
}
