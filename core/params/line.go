package params

import "strings"

// Line is the command line that reproduces a set, quoted for a POSIX shell: every value that anything set and, where no
// plan is to choose, every default too, so that what is off is printed as well. [Parse] reads it back to the same values.
func Line(program string, s *Set) string {
	words := []string{quote(program)}
	for _, arg := range Args(s) {
		words = append(words, quote(arg))
	}
	return strings.Join(words, " ")
}

// Args is the line's arguments, one string each and not quoted.
func Args(s *Set) []string {
	var args []string
	for _, p := range rows {
		if !s.printed(p) {
			continue
		}
		text := s.Text(p.Name)
		switch {
		case p.Kind == Bool && s.Bool(p.Name):
			args = append(args, p.Flag())
		case p.Kind == Bool:
			args = append(args, "--no-"+p.Name)
		case strings.HasPrefix(text, "-"): // would read as a flag to a person
			args = append(args, p.Flag()+"="+text)
		case p.Short != "":
			args = append(args, "-"+p.Short, text)
		default:
			args = append(args, p.Flag(), text)
		}
	}
	return args
}

func (s *Set) printed(p *Param) bool {
	value := s.values[p.Name]
	switch {
	case p.Scope == Action, !s.has(p.Needs) && (p.Kind != Bool || s.Bool(p.Name) || value.source == FromDefault):
		return false
	case value.source != FromDefault:
		return true
	case s.Bool("auto") || p.Scope != Run && p.Scope != Request:
		return false // a plan may choose it: in the line it would be a pin
	}
	return value.value != "" && value.value != Auto
}

// quote leaves a word as it is where a shell would, and else puts it in single quotes.
func quote(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
