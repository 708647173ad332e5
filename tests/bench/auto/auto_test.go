package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/core/params"
	"github.com/bmoe/bmoe/core/plan"
)

func streamed(t *testing.T) plan.Plan {
	on, err := machine.Load("../../machines/laptop.json")
	require.NoError(t, err)
	m, err := model.Load("../../machines/35b-a3b.model.json")
	require.NoError(t, err)
	set, err := params.Parse([]string{"-m", "m.gguf", "--auto"}, func(string) (string, bool) { return "", false })
	require.NoError(t, err)
	made := plan.Make(plan.Input{Machine: *on, Model: m, Params: set, Policy: plan.DefaultPolicy(), Session: plan.Abilities{LocksCache: true}})
	require.Equal(t, plan.Streams, made.Outcome)
	return made
}

// Every setting is a line that the command takes, differs from the plan in one knob, and none is there twice.
func TestSettings(t *testing.T) {
	t.Parallel()
	made := streamed(t)
	seen := map[string]bool{}
	beyond := 0
	for _, s := range byHand(made) {
		set, err := params.Parse(append([]string{"-m", "m.gguf"}, s.args...), func(string) (string, bool) { return "", false })
		require.NoError(t, err, s.args)
		var differs []string
		for _, p := range params.All() {
			if p.Scope == params.Run && p.Name != "model" && set.Text(p.Name) != made.Params.Text(p.Name) {
				differs = append(differs, p.Name)
			}
		}
		if s.name == "the plan by hand" {
			assert.Empty(t, differs)
		} else {
			assert.Len(t, differs, 1, s.name)
		}
		key := strings.Join(s.args, " ")
		assert.False(t, seen[key], s.name)
		seen[key] = true
		if s.beyond {
			beyond++
		}
	}
	assert.Equal(t, 2, beyond)
	assert.GreaterOrEqual(t, len(seen), 10)
}

func TestFlags(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-folder", "x"})
	require.NoError(t, err)
	assert.True(t, o.full)
	assert.Len(t, o.sizes, 5)
	o, err = parse([]string{"-folder", "x", "-memory", "2048", "-rounds", "1"})
	require.NoError(t, err)
	assert.False(t, o.full)
	for _, args := range [][]string{nil, {"-folder", "x", "-memory", "lots"}, {"-folder", "x", "-rounds", "0"}, {"-folder", "x", "y"}} {
		_, err := parse(args)
		assert.Error(t, err, args)
	}
}

// The measured tokens are those after the warm-up, and a table that is too short is an error.
func TestReadTable(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.csv")
	rows := []string{"# a run", "index,id,elapsed_ns,hits,misses,read_bytes,wait_ns"}
	for i := range warmTokens + 1 {
		rows = append(rows, strings.Replace("N,5,9000000000,0,7,1,1", "N", string(rune('0'+i%10)), 1))
	}
	rows = append(rows, "40,5,100000000,3,1,1,1", "41,5,300000000,3,1,1,1")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(rows, "\n")+"\n"), 0o600))
	var o outcome
	require.NoError(t, o.read(path))
	assert.InDelta(t, 0.2, o.perToken, 1e-9)
	assert.InDelta(t, 0.75, o.hits, 1e-9)
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(rows[:5], "\n")+"\n"), 0o600))
	assert.ErrorContains(t, o.read(path), "too few tokens")
}

// A target is met or missed by what was measured.
func TestChecks(t *testing.T) {
	t.Parallel()
	made := streamed(t)
	ledger, _ := made.Ledger.Total()
	c := &confined{size: 4 << 30, plan: made, corrected: made, settings: []setting{{name: "auto"}, {name: "lanes"}, {name: "larger", beyond: true}}, rounds: map[string][]outcome{
		"first":  {{perToken: made.Prediction.PerToken, hits: 0.5, held: ledger}},
		"auto":   {{perToken: 0.1, predicted: 0.11, held: ledger + slack}, {perToken: 0.1, predicted: 0.12}},
		"lanes":  {{perToken: 0.095}},
		"larger": {{perToken: 0.01}},
	}}
	for _, k := range c.checks() {
		assert.True(t, k.met, "%s: %s", k.what, k.measured)
	}
	c.rounds["auto"][0].held++
	c.rounds["auto"][1].killed = true
	c.rounds["lanes"][0].perToken = 0.08
	c.rounds["auto"][0].predicted = 0.2
	c.corrected.Prediction.PerToken *= 2
	for _, k := range c.checks() {
		assert.False(t, k.met, "%s: %s", k.what, k.measured)
	}
	l := &lab{profile: &model.Profile{}, found: []*confined{c}}
	page, missed := l.report()
	assert.Equal(t, 5, missed)
	assert.Contains(t, page, "The best beyond what the plan may hold: 100.00 tok/s with \"larger\".")
}
