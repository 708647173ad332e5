package projection

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/plan"
	"github.com/bmoe/bmoe/core/probe"
	"github.com/bmoe/bmoe/tests/module"
)

// TestLayersArePlacedOnCards: what the fitter answers for cards that hold all of a model, a part, or nothing.
func TestLayersArePlacedOnCards(t *testing.T) {
	program := module.Beside(t, "")
	cards := module.Compile(t, program, filepath.Join("testdata", "card.c"), "card")
	path, m := subject(t, "qwen3moe-20m")
	all := m.Layers + m.MTPLayers + 1
	const mib = 1 << 20
	for _, test := range []struct {
		name, cards string
		check       func(t *testing.T, found plan.Placement)
	}{
		{"one that holds all", "65536", func(t *testing.T, found plan.Placement) {
			assert.Equal(t, all, found.Layers)
			assert.Empty(t, found.Overrides)
			require.Len(t, found.Devices, 1)
			assert.Equal(t, all, found.Devices[0].Layers)
			assert.Greater(t, found.Devices[0].Bytes, m.ExpertBytes())
			assert.Zero(t, found.Placed.At.Context, "the cache is the card's")
		}},
		{"two that hold all, one thrice as large", "16384,49152", func(t *testing.T, found plan.Placement) {
			assert.Equal(t, all, found.Layers)
			require.Len(t, found.Devices, 2)
			assert.Equal(t, []int{2, 5}, []int{found.Devices[0].Layers, found.Devices[1].Layers}, "as the free memory is")
		}},
		{"one that holds a part", "1048", func(t *testing.T, found plan.Placement) {
			require.Len(t, found.Devices, 1)
			assert.Positive(t, found.Layers)
			require.NotEmpty(t, found.Overrides)
			for _, o := range found.Overrides {
				assert.Contains(t, o.Pattern, "ffn_")
				assert.Equal(t, "CPU", o.Where)
			}
			assert.LessOrEqual(t, found.Devices[0].Bytes+found.Placed.Devices["CARD0"].At, int64(1048-1024)*mib, "less the margin")
		}},
		{"two that hold a part", "1040,1044", func(t *testing.T, found plan.Placement) {
			require.Len(t, found.Devices, 2)
			assert.Equal(t, found.Layers, found.Devices[0].Layers+found.Devices[1].Layers)
		}},
		{"one that holds nothing", "1024", func(t *testing.T, found plan.Placement) {
			assert.Empty(t, found.Devices)
			assert.Zero(t, found.Layers)
		}},
		{"one that does not say what it holds", "0", func(t *testing.T, found plan.Placement) { assert.Empty(t, found.Devices) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := func(ctx context.Context, args ...string) ([]byte, error) {
				child := exec.CommandContext(ctx, program, args...)
				child.Env = append(os.Environ(), "BMOE_TEST_CARDS="+test.cards)
				child.Stderr = os.Stderr
				return child.Output()
			}
			var devices []machine.Device
			for i := range strings.Split(test.cards, ",") {
				devices = append(devices, machine.Device{Name: "CARD" + string(rune('0'+i)), Usable: machine.Known(true, "its probe")})
			}
			r := probe.Request{Model: m, Path: path, Session: probe.Session{Context: length, Ubatch: 512}}
			found, err := probe.Projector{Again: run}.Place(t.Context(), r, probe.Accelerators{Devices: devices, Modules: []string{cards}})
			require.NoError(t, err)
			assert.NotContains(t, found.Projection.Why, "left out")
			t.Logf("%+v", found)
			alone := project(t, path, m, r.Session)
			assert.Equal(t, alone.At, found.Projection.At, "the host alone takes what it does without cards")
			assert.Equal(t, alone.Half, found.Projection.Half)
			if len(found.Devices) > 0 {
				assert.Equal(t, 512, found.Placed.Width)
				for _, d := range found.Devices {
					at := found.Projection.Devices[d.Name]
					assert.Positive(t, at.Half)
					assert.Greater(t, at.At, at.Half)
				}
			}
			test.check(t, found)
		})
	}
}
