package machine

import (
	"fmt"
	"strconv"
	"strings"
)

// Line is one fact of a profile, for a person.
type Line struct {
	About string `json:"about"` // the part of the machine: "memory", "cores", "storage", a device's name, ...
	Fact  string `json:"fact"`  // what is asked
	Value string `json:"value"` // with its unit; "unknown" where nothing answered
	From  string `json:"from"`  // where it came from or, of an unknown one, why there is none
}

// unknown is the value of a fact that could not be had.
const unknown = "unknown"

// List is every fact of the profile in one order, the unknown ones too: what is not known is an answer in its own right.
func (p *Profile) List() []Line {
	m, c, s := p.Memory, p.Cores, p.Storage
	lines := []Line{
		line("memory", "total", m.Total, Bytes),
		line("memory", "available to this process", m.Available, Bytes),
		line("memory", "held and kept when tried", m.Keepable, Bytes),
		line("memory", "under pressure", m.Pressure, func(v Pressure) string { return string(v) }),
		line("memory", "compresses to one of", m.CompressorRatio, number2),
		line("memory", "idle and anonymous", m.IdleAnonymous, Bytes),
		line("memory", "a store exempt from reclaim", m.ExemptStore, yesNo),
		line("memory", "left in that store", m.ExemptTotal, Bytes),
		line("memory", "may be locked in place", m.LockInPlace, Bytes),
		line("memory", "page", m.PageSize, Bytes),
		line("cores", "physical, for this process", c.Physical, strconv.Itoa),
	}
	lines = append(lines, classes(c))
	lines = append(lines,
		line("cores", "weights per second, 1 token", c.ReadRate, perSecond),
		line("cores", "weights per second, 128 tokens", c.WideRate, perSecond),
		line("backends", "in this build", p.Backends.Linked, strconv.Itoa),
		line("backends", "modules beside it", p.Backends.Loaded, strconv.Itoa),
	)
	for _, d := range p.Devices {
		lines = append(lines, d.list()...)
	}
	return append(lines, s.list()...)
}

func (d Device) list() []Line {
	about := d.Name
	lines := []Line{
		{about, "is", or(d.Description, unknown), ""},
		line(about, "usable", d.Usable, yesNo),
	}
	if IsNo(d.Usable) {
		return lines // nothing asks it anything more
	}
	return append(lines,
		line(about, "uses the host's memory", d.SharesHost, yesNo),
		line(about, "its buffers are exempt from reclaim", d.Wires, yesNo),
		line(about, "memory", d.Total, Bytes),
		line(about, "of it free", d.Free, Bytes),
		line(about, "computes on the host's buffers", d.HostBuffer, yesNo),
		line(about, "wraps memory of another", d.HostPointer, yesNo),
		line(about, "rearranges weights", d.NeedsRepack, yesNo),
		line(about, "runs the model's experts", d.RunsExperts, yesNo),
		line(about, "weights per second, 1 token", d.ReadRate, perSecond),
		line(about, "error of that, NMSE", d.ReadError, nmse),
		line(about, "weights per second, 128 tokens", d.WideRate, perSecond),
		line(about, "error of that, NMSE", d.WideError, nmse),
		line(about, "a crossing from the host", d.Crossing, took),
	)
}

func (s Storage) list() []Line {
	lines := []Line{
		line("storage", "direct reads", s.Direct, yesNo),
		line("storage", "in blocks of", s.Align, Bytes),
	}
	if len(s.Curve) == 0 {
		lines = append(lines, Line{"storage", "read rate", unknown, s.From})
	}
	for i, r := range s.Curve {
		value := perSecond(r.Rate)
		if r.Spread > 0 {
			value += fmt.Sprintf(", repeats within %.3gx", r.Spread)
		}
		from := ""
		if i == 0 {
			from = s.From
		}
		lanes := "lanes"
		if r.Lanes == 1 {
			lanes = "lane"
		}
		lines = append(lines, Line{"storage", fmt.Sprintf("%s on %d %s", Bytes(r.Size), r.Lanes, lanes), value, from})
	}
	return append(lines,
		line("storage", "scattered pages, one at a time", s.Refault, perSecond),
		line("storage", "a mapping slows reads", s.MappingSerialises, yesNo),
		line("storage", "reads with a mapping", s.MappedRate, perSecond),
		line("storage", "reads without it", s.UnmappedRate, perSecond),
		line("storage", "gain of computing while reading", s.OverlapGain, func(v float64) string { return fmt.Sprintf("%.2fx", v) }),
	)
}

func line[T any](about, fact string, f Fact[T], text func(T) string) Line {
	value := unknown
	if v, ok := f.Get(); ok {
		value = text(v)
	}
	return Line{about, fact, value, f.From()}
}

func classes(c Cores) Line {
	if len(c.Classes) == 0 {
		return Line{"cores", "classes, fastest first", unknown, or(c.ClassesFrom, "nobody asked")}
	}
	var words []string
	for _, class := range c.Classes {
		word := strconv.Itoa(class.Count)
		if class.Frequency > 0 {
			word += fmt.Sprintf(" at %.1f GHz", float64(class.Frequency)/1e9)
		}
		words = append(words, word)
	}
	return Line{"cores", "classes, fastest first", strings.Join(words, ", "), c.ClassesFrom}
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

func yesNo(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}

// Bytes writes a size in the unit that shows it: "512 B", "16 KiB", "581 MiB", "6.3 GiB".
func Bytes(n int64) string {
	switch v := float64(n); {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.0f KiB", v/(1<<10))
	case n < 10<<30:
		return fmt.Sprintf("%.0f MiB", v/(1<<20))
	default:
		return fmt.Sprintf("%.1f GiB", v/(1<<30))
	}
}

func perSecond(rate float64) string { return Bytes(int64(rate)) + "/s" }

func number2(v float64) string { return fmt.Sprintf("%.2f", v) }

func nmse(v float64) string { return fmt.Sprintf("%.1e", v) }

func took(seconds float64) string { return fmt.Sprintf("%.3g µs", seconds*1e6) }
