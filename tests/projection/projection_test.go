package projection

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/engine"
	"github.com/bmoe/bmoe/core/gguf"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/core/plan"
	"github.com/bmoe/bmoe/core/probe"
	"github.com/bmoe/bmoe/tests/synth"
)

const length = 2048

// The models: plain attention, sliding windows in every other layer, compressed attention, a block for multi-token
// prediction, and shards.
var models = []string{"qwen3moe-20m", "gpt-oss-20m", "deepseek2-20m", "glm4moe-20m", "qwen3moe-shards-20m"}

// The caches. Quantized values need flash attention.
var caches = []struct{ k, v, flash string }{
	{"f16", "f16", "auto"}, {"f16", "f16", "off"}, {"q8_0", "q8_0", "auto"}, {"q8_0", "f16", "off"}, {"q4_0", "q4_0", "on"},
}

// subject writes a model and gives its path and profile.
func subject(t *testing.T, name string) (string, *model.Profile) {
	t.Helper()
	spec, err := synth.Named(name)
	require.NoError(t, err)
	files, err := synth.Write(t.Context(), filepath.Join(t.TempDir(), "model.gguf"), spec, nil)
	require.NoError(t, err)
	file, err := gguf.Open(files[0])
	require.NoError(t, err)
	m, err := model.FromGGUF(file)
	require.NoError(t, err)
	return files[0], m
}

// project asks in this process.
func project(t *testing.T, path string, m *model.Profile, s probe.Session) plan.Projection {
	t.Helper()
	found, err := probe.Projector{Load: engine.Libraries}.Place(t.Context(), probe.Request{Model: m, Path: path, Session: s}, probe.Accelerators{})
	require.NoError(t, err)
	require.Equal(t, s.Ubatch, found.Projection.Width, found.Projection.Why)
	return found.Projection
}

// reserved opens a session and gives what it reserved.
func reserved(t *testing.T, path string, s probe.Session, stream bool) plan.Reserve {
	t.Helper()
	session, err := engine.Open(t.Context(), engine.Config{
		Model: path, Context: s.Context, Ubatch: s.Ubatch, Threads: 1, TypeK: s.TypeK, TypeV: s.TypeV, FlashAttn: s.FlashAttn,
		Stream: stream, ExpertsUsed: s.ExpertsUsed,
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, session.Close()) }()
	r := session.Report()
	return plan.Reserve{Context: r.ContextBytes, Compute: r.ComputeBytes}
}

// TestASessionReservesWhatWasProjected: to the byte, plain and streamed, at both widths.
func TestASessionReservesWhatWasProjected(t *testing.T) {
	for _, name := range models {
		path, m := subject(t, name)
		for _, c := range caches {
			for _, width := range []int{length, 512, 1} {
				t.Run(fmt.Sprintf("%s/%s-%s-%s/%d", name, c.k, c.v, c.flash, width), func(t *testing.T) {
					s := probe.Session{Context: length, Ubatch: width, TypeK: c.k, TypeV: c.v, FlashAttn: c.flash}
					if m.Architecture == "deepseek2" && c.k != c.v {
						neither(t, path, m, s)
						return
					}
					p := project(t, path, m, s)
					assert.Equal(t, p.At, reserved(t, path, s, false), "plain")
					assert.Equal(t, p.At, reserved(t, path, s, true), "streamed")
					if s.Ubatch /= 2; s.Ubatch > 0 {
						assert.Equal(t, p.Half, reserved(t, path, s, true), "streamed, half as wide")
					}
				})
			}
		}
	}
}

// neither: what no session can be opened as is not projected either, and says why in the same words.
func neither(t *testing.T, path string, m *model.Profile, s probe.Session) {
	t.Helper()
	found, err := probe.Projector{Load: engine.Libraries}.Place(t.Context(), probe.Request{Model: m, Path: path, Session: s}, probe.Accelerators{})
	require.NoError(t, err)
	assert.Zero(t, found.Projection.Width)
	const why = "model does not support different K (q8_0) and V (f16) cache types"
	assert.Contains(t, found.Projection.Why, why)
	_, err = engine.Open(t.Context(), engine.Config{Model: path, Context: s.Context, Ubatch: s.Ubatch, TypeK: s.TypeK, TypeV: s.TypeV, FlashAttn: s.FlashAttn})
	assert.ErrorContains(t, err, why)
}

// TestAnotherRoutingWidthIsProjected: a narrower routing takes less, and as much less as was projected.
func TestAnotherRoutingWidthIsProjected(t *testing.T) {
	path, m := subject(t, "qwen3moe-20m")
	s := probe.Session{Context: length, Ubatch: length}
	own := project(t, path, m, s)
	s.ExpertsUsed = 1
	narrow := project(t, path, m, s)
	assert.Less(t, narrow.At.Compute, own.At.Compute)
	assert.Equal(t, narrow.At, reserved(t, path, s, true))
}

// TestTheLineThroughTwoWidthsHolds: what a plan prices narrower graphs at is what they take, give or take a hundredth of what
// the widest one takes.
func TestTheLineThroughTwoWidthsHolds(t *testing.T) {
	for _, name := range models {
		path, m := subject(t, name)
		for _, flash := range []string{"auto", "off"} {
			s := probe.Session{Context: length, Ubatch: length, FlashAttn: flash}
			p := project(t, path, m, s)
			perToken := float64(p.At.Compute-p.Half.Compute) / (length / 2)
			for _, width := range []int{512, 256, 128} {
				s.Ubatch = width
				line := float64(p.At.Compute) - perToken*float64(length-width)
				assert.InDelta(t, project(t, path, m, s).At.Compute, line, float64(p.At.Compute)/100, "%s %s %d", name, flash, width)
			}
		}
	}
}

// TestTheExpertDeviceIsNotCounted: once a session has streamed, this program's own device is registered for good, and the
// fitter counts the host's buffers for it again. What is projected stays what it was.
func TestTheExpertDeviceIsNotCounted(t *testing.T) {
	path, m := subject(t, "qwen3moe-20m")
	s := probe.Session{Context: length, Ubatch: 512}
	reserved(t, path, s, true)
	assert.Equal(t, project(t, path, m, s).At, reserved(t, path, s, false))
}
