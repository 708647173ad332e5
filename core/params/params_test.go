package params

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// environment is the variables of a test; none other is seen.
type environment map[string]string

func (e environment) get(name string) (string, bool) { v, ok := e[name]; return v, ok }

func parse(t require.TestingT, env environment, args ...string) *Set {
	s, err := Parse(args, env.get)
	require.NoError(t, err, "%q", args)
	return s
}

func TestTable(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	once := func(spelling, name string) {
		assert.Empty(t, seen[spelling], "%s of --%s is taken", spelling, name)
		seen[spelling] = name
	}
	group := ""
	closed := map[string]bool{}
	for _, p := range All() {
		for _, spelling := range p.spellings() {
			once("--"+spelling, p.Name)
		}
		if p.Short != "" {
			assert.Len(t, p.Short, 1)
			once("-"+p.Short, p.Name)
		}
		if p.Alias != "" {
			assert.Greater(t, len(p.Alias), 1, p.Name)
			once("-"+p.Alias, p.Name)
		}
		assert.NotPanics(t, func() { p.zero() }, p.Name)
		assert.Equal(t, p.Kind == Bool, p.Arg == "", "--%s: a switch has no value, the others name theirs", p.Name)
		assert.Equal(t, p.Kind == Enum, len(p.Choices) > 0, p.Name)
		assert.True(t, strings.HasSuffix(p.Help, "."), "--%s: help is sentences", p.Name)
		assert.Equal(t, p.Scope == Action, p.Env() == "", p.Name)
		if p.Group != group {
			assert.False(t, closed[p.Group], "--%s: group %q is in two places", p.Name, p.Group)
			closed[group], group = true, p.Group
		}
		for _, need := range p.Needs {
			assert.Equal(t, Bool, must(need).Kind)
		}
	}
}

func TestFlag(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "--io-threads", Flag("io-threads"))
	assert.Equal(t, "--no-overlap", Flag("no-overlap"))
	assert.Panics(t, func() { Flag("io-thread") })
	assert.Panics(t, func() { Flag("no-io-threads") })
	assert.Panics(t, func() { New().Bool("io-threads") })
}

func TestSpellings(t *testing.T) {
	t.Parallel()
	const on = "--moe-stream"
	for _, c := range []struct {
		args       []string
		name, text string
	}{
		{[]string{"-ctk", "q8_0"}, "cache-type-k", "q8_0"},
		{[]string{"-ctk=q8_0"}, "cache-type-k", "q8_0"},
		{[]string{"--cache-type-k", "q8_0"}, "cache-type-k", "q8_0"},
		{[]string{"-ctv", "q4_0", "-fa", "on"}, "flash-attn", "on"},
		{[]string{"-ub", "33", "-tb", "3"}, "ubatch", "33"},
		{[]string{"-c", "0"}, "ctx-size", "0"},
		{[]string{"-c4096"}, "ctx-size", "4096"},
		{[]string{"-p", "-ctk"}, "prompt", "-ctk"},
		{[]string{"-p", "--no-overlap", on}, "overlap", "on"},
		{[]string{"--prompt="}, "prompt", ""},
		{[]string{"-f", "-"}, "file", "-"},
		{[]string{on, "--cache-mb", "1.5G"}, "cache-mb", "1536"},
		{[]string{on, "--cache-mb", "auto"}, "cache-mb", "auto"},
		{[]string{on, "--memory", "3072m"}, "memory", "3GiB"},
		{[]string{on, "--memory", "3GB"}, "memory", "3000000000B"},
		{[]string{on, "--no-odirect"}, "odirect", "off"},
		{[]string{on, "--no-odirect=off"}, "odirect", "on"},
		{[]string{on, "--overlap=no"}, "overlap", "off"},
		{[]string{"-v"}, "verbose", "on"},
		{[]string{"-c", "7", "-c", "7"}, "ctx-size", "7"},
	} {
		assert.Equal(t, c.text, parse(t, nil, c.args...).Text(c.name), "%q", c.args)
	}
}

func TestSources(t *testing.T) {
	t.Parallel()
	env := environment{"BMOE_CTX_SIZE": "512", "BMOE_THREADS": "3", "BMOE_OVERLAP": "0", "BMOE_CSV": "", "BMOE_HELP": "1"}
	s := parse(t, env, "-c", "1024", "--moe-stream")
	assert.Equal(t, int64(1024), s.Int("ctx-size"), "a flag beats its variable")
	assert.Equal(t, FromFlag, s.Source("ctx-size"))
	assert.Equal(t, int64(3), s.Int("threads"), "a variable beats the default")
	assert.Equal(t, FromVariable, s.Source("threads"))
	assert.True(t, s.Pinned("threads"))
	assert.False(t, s.Bool("overlap"))
	assert.Equal(t, FromDefault, s.Source("io-threads"))
	assert.False(t, s.Pinned("io-threads"))
	assert.Equal(t, FromDefault, s.Source("csv"), "an empty variable sets nothing")
	assert.False(t, s.Bool("help"), "an action has no variable")
	require.NoError(t, s.Put("io-threads", "8", FromPlan))
	assert.False(t, s.Pinned("io-threads"))

	c := s.Clone()
	require.NoError(t, c.Put("threads", "5", FromPlan))
	assert.Equal(t, int64(3), s.Int("threads"), "a clone is its own")
}

func TestVariableYieldsToFlag(t *testing.T) {
	t.Parallel()
	s := parse(t, environment{"BMOE_PROMPT": "x"}, "-f", "y")
	assert.Equal(t, "", s.String("prompt"))
	s = parse(t, environment{"BMOE_CACHE_MB": "2000"}, "-m", "x")
	assert.Equal(t, Auto, s.Int("cache-mb"), "a plain run has no cache")
	s = parse(t, environment{"BMOE_CACHE_MB": "2000"}, "--auto")
	assert.Equal(t, 2000*MiB, s.Int("cache-mb"))
	s = parse(t, environment{"BMOE_MOE_STREAM": "off"}, "--auto", "--cache-mb", "1")
	assert.False(t, s.Pinned("moe-stream"))
}

func TestGreedyUnlessSampled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		temp float64
	}{
		{nil, 0}, {[]string{"--top-k", "5"}, 0.8}, {[]string{"--seed", "1"}, 0.8},
		{[]string{"--top-p", "0.9", "--temp", "0"}, 0}, {[]string{"--temp", "1.2"}, 1.2},
	} {
		assert.Equal(t, c.temp, parse(t, nil, c.args...).Float("temp"), "%q", c.args)
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"-c many":                                `--ctx-size: "many" is neither a whole number nor "auto"`,
		"-c 1.5":                                 `--ctx-size: "1.5" is neither a whole number nor "auto"`,
		"-c -1":                                  `--ctx-size: must be at least 0`,
		"-t 0":                                   `--threads: must be 1 to 512`,
		"-n auto":                                `--n-predict: "auto" is not a whole number`,
		"--temp warm":                            `--temp: "warm" is not a number`,
		"--temp NaN":                             `--temp: "NaN" is not a number`,
		"--top-p 2":                              `--top-p: must be 0 to 1`,
		"-ctk q3":                                `--cache-type-k: "q3" is none of f32, f16, bf16, q8_0, q4_0, q4_1, iq4_nl, q5_0, q5_1`,
		"-m=":                                    `--model: the name of the file is empty`,
		"--auto --memory 3072":                   `--memory: "3072" has no unit: write 3072M or 3072G`,
		"--auto --memory 3Q":                     `--memory: "3Q" is not a size such as 3GiB or 3072M`,
		"--auto --memory 1M":                     `--memory: must be at least 64MiB`,
		"--auto --cache-mb 99999999999999999999": `--cache-mb: "99999999999999999999" is more bytes than can be counted`,
		"--auto --cache-mb 99999999999999":       `--cache-mb: "99999999999999" is more bytes than can be counted`,
		"--auto --cache-mb 1.2.3":                `--cache-mb: "1.2.3" is not a size such as 3GiB or 3072M`,
		"--overlap=perhaps":                      `--overlap: "perhaps" is neither on nor off`,
		"--no-overlap=perhaps":                   `--no-overlap: "perhaps" is neither on nor off`,
		"-m":                                     `--model needs a value`,
		"--cach-mb 3":                            `there is no flag --cach-mb: did you mean --cache-mb?`,
		"--no-overlapp":                          `there is no flag --no-overlapp: did you mean --no-overlap?`,
		"--frobnicate":                           `there is no flag --frobnicate: --help lists them`,
		"-z":                                     `there is no flag -z: --help lists them`,
		"model.gguf":                             `"model.gguf" is not a flag: the model is given with -m, the prompt with -p`,
		"-- -m":                                  `"-m" is not a flag: the model is given with -m, the prompt with -p`,
		"-p a -f b":                              `--prompt and --file contradict each other: a run has one prompt`,
		"--overlap --no-overlap --auto":          `--overlap and --no-overlap contradict each other`,
		"-c 1 -c 2":                              `--ctx-size is given twice, as "1" and as "2"`,
		"-v --log-level info":                    `--verbose and --log-level contradict each other: -v is the level debug`,
		"-ctv q8_0 -fa off":                      `--cache-type-v and --flash-attn contradict each other: a quantized value cache needs flash attention`,
		"--auto --cache-mb 4096 --memory 3G":     `--cache-mb and --memory contradict each other: the cache would be larger than all the memory the run may hold`,
		"--no-moe-stream --cache-mb 1":           `--no-moe-stream and --cache-mb contradict each other: one turns off what the other is about`,
		"--no-moe-stream --auto --io-threads 2":  `--no-moe-stream and --io-threads contradict each other: one turns off what the other is about`,
		"--io-threads 2":                         `--io-threads does nothing without --moe-stream or --auto or --plan-only or --plan-json`,
		"--plan-explain":                         `--plan-explain does nothing without --auto or --plan-only or --plan-json`,
		"--moe-stream --no-auto --plan-explain":  `--no-auto and --plan-explain contradict each other: one turns off what the other is about`,
		"--moe-stream --dense-weights everywhere": `--dense-weights: "everywhere" is none of mmap, warm, anon, pinned`,
	} {
		_, err := Parse(strings.Fields(line), environment{}.get)
		assert.EqualError(t, err, want, line)
	}
	_, err := Parse(nil, environment{"BMOE_CTX_SIZE": "x"}.get)
	assert.EqualError(t, err, `BMOE_CTX_SIZE: "x" is neither a whole number nor "auto"`)
	_, err = Parse(nil, environment{"BMOE_PROMPT": "x", "BMOE_FILE": "y"}.get)
	assert.EqualError(t, err, `BMOE_PROMPT and BMOE_FILE contradict each other: a run has one prompt`)
}

func TestHarmless(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"--no-overlap", "--no-moe-stream --no-overlap", "--auto --no-moe-stream", "--moe-stream --no-auto --cache-mb 5",
		"--auto --plan-explain", "-v --log-level debug", "-ctv q8_0 -fa auto", "-ctk q8_0 -fa off",
	} {
		_, err := Parse(strings.Fields(line), environment{}.get)
		assert.NoError(t, err, line)
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	p := &Param{Name: "wait", Kind: Duration, Min: 1, Max: 60}
	v, err := p.parse("1m0s")
	require.NoError(t, err)
	assert.Equal(t, "1m0s", p.format(v))
	_, err = p.parse("61s")
	assert.EqualError(t, err, "must be 1s to 1m0s")
	_, err = p.parse("61")
	assert.ErrorContains(t, err, "is not a duration")
}

func TestLine(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "bmoe-cli -m a.gguf --cache-type-k f16 --cache-type-v f16 --flash-attn auto"+
		" -n 256 --no-ignore-eos --temp 0 --top-k 40 --top-p 0.95 --min-p 0.05 --no-moe-stream --n-gpu-layers 0", Line("bmoe-cli", parse(t, nil, "-m", "a.gguf")))
	line := Line("bmoe-cli", parse(t, nil, "-m", "it's a.gguf", "-p", "two\nlines", "--moe-stream", "--no-overlap"))
	assert.Contains(t, line, `-m 'it'\''s a.gguf'`)
	assert.Contains(t, line, "-p 'two\nlines'")
	for _, part := range []string{" --moe-stream", " --no-overlap", " --odirect", " --no-ignore-eos", " --io-threads 4"} {
		assert.Contains(t, line, part, "what is off and what is at its default is printed too")
	}
	assert.NotContains(t, line, "n-expert-used")
	assert.Equal(t, "bmoe-cli -m a --auto", Line("bmoe-cli", parse(t, nil, "-m", "a", "--auto")), "defaults would be pins")
	assert.NotContains(t, Line("bmoe-cli", parse(t, nil, "-m", "a")), "io-threads", "without effect in a plain run")
	assert.Contains(t, Line("bmoe-cli", parse(t, nil, "-p=-x")), " --prompt=-x ")
}

// The line of any set reads back to the same values and, under a plan, to the same pins.
func TestLineReadsBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type typed struct{ name, text string }
		var list []typed
		for _, p := range rows {
			if p.Scope != Action && rapid.IntRange(0, 2).Draw(t, p.Name+" left out") == 0 {
				list = append(list, typed{p.Name, anyText(t, p)})
			}
		}
		var s *Set
		for { // what contradicts itself loses one after the other until it does not
			s = New()
			for _, one := range list {
				require.NoError(t, s.Put(one.name, one.text, FromFlag))
			}
			err := s.Finish(environment{}.get)
			if err == nil {
				break
			}
			require.NotEmpty(t, list, "nothing contradicts itself: %v", err)
			i := rapid.IntRange(0, len(list)-1).Draw(t, "dropped")
			list = slices.Delete(list, i, i+1)
		}
		line := Line("bmoe-cli", s)
		back := parse(t, nil, words(t, line)[1:]...)
		for _, p := range rows {
			assert.Equal(t, s.Text(p.Name), back.Text(p.Name), "%s of %s", p.Name, line)
			if s.Bool("auto") {
				assert.Equal(t, s.Pinned(p.Name), back.Pinned(p.Name), "pin of %s of %s", p.Name, line)
			}
		}
		assert.Equal(t, line, Line("bmoe-cli", back))
	})
}

// anyText draws a valid value of the row, as typed.
func anyText(t *rapid.T, p *Param) string {
	if p.Auto && rapid.Bool().Draw(t, "auto") {
		return auto
	}
	switch p.Kind {
	case Bool:
		return rapid.SampledFrom([]string{"on", "off"}).Draw(t, p.Name)
	case Int, Size:
		n := rapid.Int64Range(int64(p.Min), int64(p.Max)).Draw(t, p.Name)
		return p.format(n)
	case Duration:
		least, most := time.Duration(p.Min*float64(time.Second)), time.Duration(p.Max*float64(time.Second))
		return p.format(time.Duration(rapid.Int64Range(int64(least), int64(most)).Draw(t, p.Name)))
	case Float:
		return p.format(rapid.Float64Range(p.Min, p.Max).Draw(t, p.Name))
	case Enum:
		return rapid.SampledFrom(p.Choices).Draw(t, p.Name)
	case Path:
		return rapid.StringMatching(`[^\x00]{1,12}`).Draw(t, p.Name)
	}
	return rapid.StringMatching(`[^\x00]{0,12}`).Draw(t, p.Name)
}

// words splits a line as a POSIX shell does, for single quotes and backslashes. Anything else that is special to a shell
// must have been quoted.
func words(t require.TestingT, line string) []string {
	var out []string
	var word strings.Builder
	in, quoted := false, false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quoted && c == '\'':
			quoted = false
		case quoted:
			word.WriteByte(c)
		case c == '\'':
			in, quoted = true, true
		case c == '\\':
			i++
			in = true
			word.WriteByte(line[i])
		case c == ' ':
			if in {
				out = append(out, word.String())
				word.Reset()
				in = false
			}
		default:
			require.NotContains(t, "\t\n\"$`|&;<>()*?[]#~!{}^", string(c), "unquoted in %s", line)
			in = true
			word.WriteByte(c)
		}
	}
	require.False(t, quoted, line)
	if in {
		out = append(out, word.String())
	}
	return out
}

func TestHelp(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	require.NoError(t, Help(&b, 80))
	for _, line := range strings.Split(b.String(), "\n") {
		assert.LessOrEqual(t, len(line), 80, line)
	}
	for _, p := range All() {
		assert.Contains(t, b.String(), p.Name)
		if p.Group != groupOther && p.Default != "" {
			assert.Contains(t, p.sentence(), "default "+p.Default)
		}
	}
	assert.Contains(t, b.String(), "--[no-]overlap")
	assert.Contains(t, b.String(), "  -ctk, --cache-type-k TYPE")
}

func FuzzParse(f *testing.F) {
	f.Add("--cache-mb", "1.5G", "--auto")
	f.Add("-ctk", "q8_0", "-c=3")
	f.Add("--no-overlap=1", "-p", "-f")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		s, err := Parse([]string{a, b, c}, environment{}.get)
		if err != nil {
			assert.NotEmpty(t, err.Error())
			return
		}
		back, err := Parse(Args(s), environment{}.get)
		require.NoError(t, err)
		assert.Equal(t, Line("x", s), Line("x", back))
	})
}
