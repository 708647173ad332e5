package plan

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// A plan's texts write every number through one of these, so that a figure reads the same wherever it stands.

// size writes bytes: "581 MiB", "6.3 GiB".
func size(bytes int64) string { return scaled(float64(bytes)) }

// speed writes bytes per second: "24 MiB/s".
func speed(rate float64) string { return scaled(rate) + "/s" }

func scaled(v float64) string {
	for _, u := range []struct {
		name  string
		bytes float64
		from  float64 // so many of them
	}{{"TiB", 1 << 40, 10}, {"GiB", 1 << 30, 0.9995}, {"MiB", 1 << 20, 0.9995}, {"KiB", 1 << 10, 0}} {
		if v < u.bytes*u.from && u.name != "KiB" {
			continue
		}
		n := v / u.bytes
		switch {
		case v == 0:
			return "0 MiB"
		case v < 1<<10:
			return fmt.Sprintf("%.0f B", v)
		}
		if n >= 99.95 || u.name == "MiB" && n >= 9.995 {
			return fmt.Sprintf("%.0f %s", n, u.name)
		}
		return fmt.Sprintf("%.1f %s", n, u.name)
	}
	return "" // not reached: KiB takes everything
}

// took writes a time: "1.46 s", "83 ms", "12 µs".
func took(seconds float64) string {
	switch {
	case seconds >= 0.9995:
		return fmt.Sprintf("%.2f s", seconds)
	case seconds >= 0.0995:
		return fmt.Sprintf("%.0f ms", seconds*1e3)
	case seconds >= 0.9995e-3:
		return fmt.Sprintf("%.1f ms", seconds*1e3)
	}
	return fmt.Sprintf("%.1f µs", seconds*1e6)
}

// pace writes tokens per second.
func pace(perSecond float64) string {
	if perSecond < 9.95 {
		return fmt.Sprintf("%.2g tok/s", perSecond)
	}
	return fmt.Sprintf("%.0f tok/s", perSecond)
}

// percent writes a share of one.
func percent(share float64) string { return strconv.FormatFloat(share*100, 'f', 0, 64) + "%" }

// times writes a ratio: "7.6x".
func times(ratio float64) string { return fmt.Sprintf("%.2gx", ratio) }

// spread writes a ratio that is held against one near to it: "1.27x".
func spread(ratio float64) string { return fmt.Sprintf("%.3gx", ratio) }

// count writes a number of things.
func count(n int) string { return strconv.Itoa(n) }

// counted is a number of things with their name: "1 lane", "4 lanes".
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return count(n) + " " + thing + "s"
}

// printable leaves out of a text what a terminal would obey.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
}

// text is a number as a parameter's value.
func text(n int) string { return strconv.Itoa(n) }

// mib is bytes as the value of a parameter counted in MiB. They are whole MiB.
func mib(bytes int64) string { return strconv.FormatInt(bytes>>20, 10) }

// floorMiB and ceilMiB round to what such a parameter can say.
func floorMiB(bytes int64) int64 { return bytes >> 20 << 20 }
func ceilMiB(bytes int64) int64  { return (bytes + 1<<20 - 1) >> 20 << 20 }

// nmse writes a normalized mean squared error: "4.4e-04".
func nmse(e float64) string { return strconv.FormatFloat(e, 'e', 1, 64) }

// ghz writes a frequency.
func ghz(hz int64) string { return fmt.Sprintf("%.1f GHz", float64(hz)/1e9) }
