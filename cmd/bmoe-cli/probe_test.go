package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/machine"
)

// The facts go to standard output with their sources and the time of each step, with a model or without.
func TestProbe(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"--probe": {"available to this process 1024 MiB (the test's word)", "storage direct reads unknown (no model was named)",
			"projection context and buffers unknown (the model is not here)", "looked at, in this order free facts ", " together "},
		"--probe --probe-mem":               {"held and kept when tried 512 MiB (held by the test)", " held memory "},
		"--probe -m moe.gguf":               {"(a test has no drive)", "(not measured in this test)", " drive ", "(not projected in this test)"},
		"--probe -m moe.gguf --no-probe-io": {"(--no-probe-io)"},
		"--probe -m dense.gguf":             {"(the model has no experts)"},
	} {
		s := newStage(t)
		require.Equal(t, exitDone, s.play(line), "%s: %s", line, &s.err)
		text := strings.Join(strings.Fields(s.out.String()), " ")
		for _, w := range want {
			assert.Contains(t, text, w, line)
		}
		assert.Empty(t, s.err.String(), line)
		assert.Empty(t, s.config.Model, "nothing is opened")
		assert.Len(t, s.looked, 1, line)
	}
	for line, want := range map[string]string{
		"--probe-mem":                "--probe-mem does nothing without --probe or --auto or --plan-only or --plan-json",
		"--probe -m none.gguf":       "none.gguf: not a GGUF file",
		"--probe --probe-limit 1":    `--probe-limit: "1" is not a duration`,
		"--probe --probe-limit 1h1s": "--probe-limit: ",
	} {
		s := newStage(t)
		assert.Equal(t, exitInput, s.play(line), line)
		assert.Contains(t, s.err.String(), want, line)
		assert.Empty(t, s.out.String(), line)
	}
}

// A machine that is saved to standard output is read back, and is all that is there.
func TestSaveMachineToStandardOutput(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"--save-machine -", "--probe --save-machine -", "--probe -m moe.gguf --save-machine -"} {
		s := newStage(t)
		require.Equal(t, exitDone, s.play(line), "%s: %s", line, &s.err)
		m, err := machine.Decode(&s.out)
		require.NoError(t, err, line)
		assert.Equal(t, "a test", m.Name)
		assert.Len(t, s.looked, 1, line)
	}
	path := filepath.Join(t.TempDir(), "machine.json")
	s := newStage(t)
	require.Equal(t, exitDone, s.play("--probe -m moe.gguf --save-machine "+path), s.err.String())
	m, err := machine.Load(path)
	require.NoError(t, err)
	assert.Equal(t, "not measured in this test", m.Cores.ReadRate.From(), "what was printed is what is saved")
}

// The steps of the look and their times are part of a plan that is explained, on the page, before a run, and as JSON.
func TestStepsAreExplained(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	require.Equal(t, exitDone, s.play("-m moe.gguf --plan-only --plan-explain"))
	assert.Regexp(t, `(?s)\nLooked at\n  free facts +\S+\n  devices +\S+\n  processor +\S+\n  projection +\S+\n  drive +\S+\n  together +\S+\n\nThe same`, s.out.String())
	s = newStage(t)
	require.Equal(t, exitDone, s.play("-m moe.gguf --plan-only"))
	assert.NotContains(t, s.out.String(), "Looked at")
	s = newStage(t)
	require.Equal(t, exitDone, s.play("-m moe.gguf -p Hi --auto --plan-explain"))
	assert.Regexp(t, `looked at the machine\n  free facts +\S+\n`, s.err.String())

	s = newStage(t)
	require.Equal(t, exitDone, s.play("-m moe.gguf --plan-json"))
	var made struct {
		Look []struct {
			Name string `json:"name"`
			Took int64  `json:"took_ns"`
		} `json:"look"`
	}
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &made))
	var names []string
	for _, step := range made.Look {
		names = append(names, step.Name)
	}
	assert.Equal(t, []string{"free facts", "devices", "processor", "projection", "drive"}, names)
}
