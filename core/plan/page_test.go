package plan

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func pageOf(t *testing.T, p Plan, style Style) string {
	var b strings.Builder
	require.NoError(t, p.WritePage(&b, style))
	return b.String()
}

// No line of any page is wider than the terminal, and colour changes nothing but colour.
func TestPageFitsTheTerminal(t *testing.T) {
	t.Parallel()
	escape := regexp.MustCompile("\x1b\\[[0-9]*m")
	for _, e := range catalogue {
		p := e.plan(t)
		for _, full := range []bool{false, true} {
			plainPage := pageOf(t, p, Style{Full: full})
			for line := range strings.SplitSeq(plainPage, "\n") {
				if utf8.RuneCountInString(line) > 80 || strings.HasSuffix(line, " ") {
					t.Errorf("%s: too wide, or ends in space: %q", e.name, line)
				}
			}
			coloured := pageOf(t, p, Style{Full: full, Color: true})
			assert.NotEqual(t, plainPage, coloured)
			assert.Equal(t, plainPage, escape.ReplaceAllString(coloured, ""))
			assert.NotContains(t, plainPage, "\x1b")
		}
	}
}

func TestPageOfALaptop(t *testing.T) {
	t.Parallel()
	for _, e := range catalogue {
		if e.name != "laptop at a context of 16384" {
			continue
		}
		page := pageOf(t, e.plan(t), Style{})
		for _, part := range []string{
			"  machine    laptop of unified memory\n",
			"  model      35B-A3B Q4_K_M: 18.2 GiB of experts, 1.6 GiB that every token needs\n",
			"  prefill slots         996 MiB    996 MiB  in turn with the cache\n",
			"  of                    7.5 GiB    9.1 GiB\n",
			"  ubatch                  1024      [policy]\n      1024 tokens per pass; 16384 would take 7.1 GiB more memory\n",
		} {
			assert.Contains(t, page, part)
		}
		assert.NotContains(t, page, "--", "a brief page names no flag")
		assert.Contains(t, pageOf(t, e.plan(t), Style{Full: true}), "--prefill-device ''")
	}
}

func TestPageOfTheUnmeasured(t *testing.T) {
	t.Parallel()
	page := pageOf(t, Plan{Ledger: Ledger{Rows: []Row{{Name: RowCache, Bytes: gib(1), Asked: true}}}}, Style{})
	assert.Contains(t, page, "a lock is asked for")
	assert.Contains(t, page, "unmeasured")
	assert.Contains(t, page, "  regime     -\n")
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no room") }

func TestPageReportsItsWriter(t *testing.T) {
	t.Parallel()
	p := Plan{}
	assert.ErrorContains(t, p.WritePage(broken{}, Style{}), "no room")
}

func TestLine(t *testing.T) {
	t.Parallel()
	d := Decision{"cache-mb", "2000", Derived, "the account", "the gist"}
	assert.Equal(t, "  cache-mb = 2000  [derived]  the gist", d.Line(false))
	assert.Equal(t, "  cache-mb = 2000  [derived]  the account", d.Line(true))
}

func TestWrap(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"one two three four", "five"}, wrap("one  two three four five", 3), "no narrower than 20 columns")
	assert.Equal(t, []string{"a", "01234567890123456789", "0123"}, wrap("a 012345678901234567890123", 20), "a word wider than a line is cut")
	assert.Equal(t, []string{""}, wrap("", 20))
	assert.Equal(t, "abc", clip("abc", 3))
	assert.Equal(t, "a…", clip("abc", 2))
}

func TestUnits(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"0 MiB": size(0), "512 B": size(512), "1.0 KiB": size(1 << 10), "60.8 KiB": size(62259), "1.0 MiB": size(1 << 20), "581 MiB": size(609_500_000),
		"9.9 MiB": size(inMiB(9.9)), "10 MiB": size(inMiB(9.996)), "1.0 GiB": size(1<<30 - 1), "1512 GiB": size(gib(1512)), "12.0 TiB": size(gib(12 * 1024)),
		"24 MiB/s": speed(24 * perMiB), "6.3 GiB/s": speed(6.3 * perGiB),
		"1.46 s": took(1.46), "83.0 ms": took(0.083), "202 ms": took(0.202), "12.0 µs": took(12e-6), "999.0 µs": took(999e-6),
		"2.5 tok/s": pace(2.48), "0.27 tok/s": pace(0.27), "23 tok/s": pace(23.2), "10%": percent(0.1), "7.6x": times(7.636), "4.4e-04": nmse(4.4e-4),
		"4.4 GHz": ghz(4_400_000_000), "1 lane": counted(1, "lane"), "4 lanes": counted(4, "lane"),
	} {
		assert.Equal(t, want, got)
	}
}

// A term without a price leaves a sum without one, and nothing to sweep takes no time at an unknown rate.
func TestPrices(t *testing.T) {
	t.Parallel()
	unknown := price{missing: "a rate"}
	assert.Equal(t, term{}, unknown.of(0))
	assert.Equal(t, term{missing: "a rate"}, unknown.of(1))
	assert.Equal(t, term{seconds: 2}, price{rate: 5}.of(10))
	assert.Equal(t, term{missing: "a rate"}, price{rate: 5}.of(10).plus(unknown.of(1)))
	assert.Equal(t, term{missing: "a rate"}, minus(unknown.of(1), price{rate: 5}.of(10)))
	assert.Equal(t, term{seconds: -1}, minus(term{seconds: 1}, term{seconds: 2}))
	assert.Equal(t, term{seconds: 6}, term{seconds: 3}.times(2))
}

// A negative term is not free: what has no price is never the cheaper of two.
func TestUnpricedIsNeverTaken(t *testing.T) {
	t.Parallel()
	a := allocation{}
	a.lane("experts", "somewhere", term{seconds: 1}, term{missing: "a rate"})
	assert.Equal(t, []Lane{{Group: "experts", Where: "somewhere", Missing: "a rate"}}, a.lanes)
	assert.Panics(t, func() { a.seconds("experts", "nowhere") })
}

func TestOverrides(t *testing.T) {
	t.Parallel()
	list := []Override{{`blk\.[0-9]=x`, "CPU"}, {"exps", "GPU0"}}
	assert.Equal(t, list, parseOverrides(formatOverrides(list)))
	assert.Nil(t, parseOverrides("nonsense,,=x"))
}
