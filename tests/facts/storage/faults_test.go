package storage

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/core/params"
	"github.com/bmoe/bmoe/core/plan"
	"github.com/bmoe/bmoe/core/probe"
	"github.com/bmoe/bmoe/tests/synth"
)

// A file that is not what it was when its profile was read costs a plan the price of reads and nothing else: the look
// completes, the plan is made, and both name the file.
func TestFaultsOfTheFile(t *testing.T) {
	t.Parallel()
	const (
		drive = "looking at the drive"
		known = "the test"
	)
	for name, c := range map[string]struct {
		before func(t *testing.T, shard string) // the look
		during func(t *testing.T, shard string) // the reading of the drive, once
		says   string
	}{
		"it shrinks while it is read":    {during: func(t *testing.T, shard string) { assert.NoError(t, os.Truncate(shard, 8192)) }, says: "the file ends there now"},
		"it is emptied while it is read": {during: func(t *testing.T, shard string) { assert.NoError(t, os.Truncate(shard, 0)) }, says: "the file ends there now"},
		"it is shorter than a slice":     {before: func(t *testing.T, shard string) { require.NoError(t, os.Truncate(shard, 1000)) }, says: "has 1000 bytes now"},
		"it is empty":                    {before: func(t *testing.T, shard string) { require.NoError(t, os.Truncate(shard, 0)) }, says: "has 0 bytes now"},
		"it is gone":                     {before: func(t *testing.T, shard string) { require.NoError(t, os.Remove(shard)) }, says: "no such file"},
		"it is a folder": {before: func(t *testing.T, shard string) {
			require.NoError(t, os.Remove(shard))
			require.NoError(t, os.Mkdir(shard, 0o755))
		}, says: "not a regular file"},
		"it may not be read": {before: func(t *testing.T, shard string) {
			require.NoError(t, os.Chmod(shard, 0))
			if f, err := os.Open(shard); err == nil {
				require.NoError(t, f.Close())
				t.Skip("this user may read every file")
			}
		}, says: "permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, shard, m := sharded(t)
			if c.before != nil {
				c.before(t, shard)
			}
			reading := false
			in := probe.Instruments{
				Machine: func() (m machine.Profile, err error) { return m, nil },
				Devices: func(context.Context, probe.Request, machine.Profile) (a probe.Accelerators, err error) { return a, nil },
				Processor: func(context.Context, probe.Request, machine.Profile) (read, wide machine.Fact[float64], err error) {
					return machine.Known(1e9, ""), machine.Known(1e9, ""), nil
				},
				Placement: func(context.Context, probe.Request, probe.Accelerators) (p plan.Placement, err error) { return p, nil },
				Drive:     probe.Storage,
			}
			found, err := in.Look(t.Context(), probe.Request{Model: m, Path: path, Direct: true, Measure: true, Tell: func(step string, fraction float64) {
				if step == drive && fraction > 0 && !reading && c.during != nil {
					reading = true
					c.during(t, shard)
				}
			}})
			require.NoError(t, err)
			assert.Equal(t, c.during != nil, reading)
			s := found.Machine.Storage
			assert.Empty(t, s.Curve, "nothing that was measured of such a file is believed")
			assert.False(t, s.Refault.Known())
			assert.False(t, s.MappingSerialises.Known())
			if runtime.GOOS != "windows" { // which has its own words
				assert.Contains(t, s.From, c.says)
			}
			assert.Contains(t, s.From, filepath.Base(shard))

			for room, want := range map[int64]plan.Outcome{12 << 20: plan.Declined, 466 << 20: plan.Streams} {
				found.Machine.Memory = machine.Memory{Total: machine.Known(int64(1<<30), known), Available: machine.Known(room, known)}
				set, err := params.Parse([]string{"--auto", "-m", path}, func(string) (string, bool) { return "", false })
				require.NoError(t, err)
				made := plan.Make(plan.Input{Machine: found.Machine, Placement: found.Placement, Model: m, Params: set, Policy: plan.DefaultPolicy()})
				assert.Equal(t, want, made.Outcome)
				named := slices.ContainsFunc(made.Decisions, func(d plan.Decision) bool { return strings.Contains(d.Reason, filepath.Base(shard)) })
				assert.True(t, named, "the plan names the file that could not be measured: %v", made.Decisions)
			}
		})
	}
}

// sharded writes a model of two files, and says which of them has most experts.
func sharded(t *testing.T) (path, shard string, m *model.Profile) {
	t.Helper()
	spec, err := synth.Named("qwen3moe-20m")
	require.NoError(t, err)
	spec.Shards, spec.HeadShard = 2, true
	files, err := synth.Write(t.Context(), filepath.Join(t.TempDir(), "model.gguf"), spec, nil)
	require.NoError(t, err)
	m, err = model.Read(files[0])
	require.NoError(t, err)
	shard = filepath.Join(filepath.Dir(files[0]), m.Shards[m.ExpertShard()].Name)
	require.NotEqual(t, files[0], shard)
	return files[0], shard, m
}
