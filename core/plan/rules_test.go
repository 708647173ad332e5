package plan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/machine"
)

// The margin is a share by what pressure does, and 256 MiB where that is more.
func TestMargins(t *testing.T) {
	t.Parallel()
	for pressure, share := range map[machine.Pressure]float64{machine.Compresses: 0.10, machine.Swaps: 0.04, machine.Kills: 0.20, "": 0.15} {
		fact := machine.Known(pressure, probed)
		if pressure == "" {
			fact = machine.Unknown[machine.Pressure]("")
		}
		turn := int64(float64(inMiB(256)) / share) // where the share comes to 256 MiB
		for reading, want := range map[int64]int64{
			turn - inMiB(100): inMiB(256), turn + inMiB(100): int64(float64(turn+inMiB(100)) * share),
			inMiB(200): inMiB(200), // no more than there is
		} {
			b := budgetOf(machine.Memory{Available: machine.Known(reading, probed), Pressure: fact}, DefaultPolicy(), 0)
			assert.Equal(t, want, b.margin, "%s at %s", pressure, size(reading))
			assert.Equal(t, reading-want, b.usable)
		}
	}
}

// A model's name is out of a file that anybody may have written.
func TestNamesAreNotObeyed(t *testing.T) {
	t.Parallel()
	e := catalogue[0]
	e.model.name = "a\x1b[31m\nmodel\u202e"
	assert.Equal(t, "a[31mmodel", e.plan(t).Model)
}

// That a device does not fit is said of no device that nobody tried to fit.
func TestDeviceThatWasNotTried(t *testing.T) {
	t.Parallel()
	for name, fits := range map[string]bool{"narrow graph by hand": false, "laptop whose wire limit a device would take": true} {
		for _, e := range catalogue {
			if e.name == name {
				d, ok := e.plan(t).find("prefill-device")
				require.True(t, ok)
				assert.Equal(t, fits, strings.Contains(d.Brief, "does not fit"), d.Brief)
			}
		}
	}
}

// A layer whose experts the projection leaves on both sides comes to the host as a whole, even where it names no host.
func TestSplitLayerComesToTheHost(t *testing.T) {
	t.Parallel()
	in := Input{Machine: with(desktop(gib(32), gib(12)), func(m *machine.Profile) { m.Devices = []machine.Device{card("CARD0", gib(16))} }),
		Model: qwen.profile(t), Params: request(t), Policy: DefaultPolicy(), Session: able,
		Placement: Placement{Overrides: []Override{{`blk\.3\.ffn_up_exps`, "CARD0"}}, Devices: []DeviceShare{{"CARD0", 1, inMiB(100)}}}}
	assert.Regexp(t, `^\^blk\\.3\\..*=CPU,blk\\.3\\.ffn_up_exps=CARD0$`, Make(in).Params.Text("override-tensor"))
}
