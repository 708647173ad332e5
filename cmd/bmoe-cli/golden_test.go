package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/plan"
)

var update = flag.Bool("update", false, "write the plans of tests/machines anew")

// Every saved machine gets, for every saved model, the plan that is kept beside it, to the byte.
func TestGoldenPlans(t *testing.T) {
	t.Parallel()
	const dir = "../../tests/machines"
	machines, err := filepath.Glob(filepath.Join(dir, "*.json"))
	require.NoError(t, err)
	plans := 0
	for _, on := range machines {
		if strings.HasSuffix(on, ".model.json") {
			continue
		}
		models, err := filepath.Glob(filepath.Join(dir, "*.model.json"))
		require.NoError(t, err)
		for _, of := range models {
			plans++
			s := newStage(t)
			s.can = plan.Abilities{LocksCache: true, PrefillDevice: true, PlacesLayers: true}
			require.Equal(t, exitDone, s.play("--plan-only --plan-explain --machine "+on+" --model-profile "+of), s.err.String())
			name := strings.TrimSuffix(filepath.Base(on), ".json") + "." + strings.TrimSuffix(filepath.Base(of), ".model.json") + ".txt"
			path := filepath.Join(dir, "plans", name)
			if *update {
				require.NoError(t, os.WriteFile(path, s.out.Bytes(), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, strings.ReplaceAll(string(want), "\r\n", "\n"), s.out.String(), "%s; -update writes it anew", name)
		}
	}
	kept, err := os.ReadDir(filepath.Join(dir, "plans"))
	require.NoError(t, err)
	assert.Len(t, kept, plans, "every kept plan is one of these")
	assert.GreaterOrEqual(t, plans, 20)
}
