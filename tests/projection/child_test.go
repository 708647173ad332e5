package projection

import (
	"time"

	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/probe"
)

// isolated starts this test's program again.
var isolated = probe.Isolated(2 * time.Minute)

// TestMain makes this program the child of a projection where it is started as one.
func TestMain(m *testing.M) {
	if handled, code := probe.Child(context.Background(), os.Args[1:], os.Stdout); handled {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// TestAChildProjectsTheSame: and a device that nobody tried, or that is unusable, is not asked about.
func TestAChildProjectsTheSame(t *testing.T) {
	path, m := subject(t, "gpt-oss-20m")
	r := probe.Request{Model: m, Path: path, Session: probe.Session{Context: length, Ubatch: 512, TypeK: "q8_0", TypeV: "q8_0", FlashAttn: "on"}}
	devices := []machine.Device{
		{Name: "UNTRIED0", Usable: machine.Unknown[bool]("nobody tried")},
		{Name: "BROKEN0", Usable: machine.Known(false, "its probe ended")},
	}
	found, err := probe.Projector{Again: isolated}.Place(t.Context(), r, probe.Accelerators{Devices: devices})
	require.NoError(t, err)
	assert.Equal(t, project(t, path, m, r.Session), found.Projection)
	assert.Empty(t, found.Devices)
	assert.Zero(t, found.Placed.Width)
}

// TestADeviceInTheWayIsLeftOut: whatever it does to the child, the host's projection is had.
func TestADeviceInTheWayIsLeftOut(t *testing.T) {
	path, m := subject(t, "qwen3moe-20m")
	r := probe.Request{Model: m, Path: path, Session: probe.Session{Context: length, Ubatch: 512}}
	usable := []machine.Device{{Name: "GONE0", Usable: machine.Known(true, "its probe")}}
	asked := 0
	dying := func(ctx context.Context, args ...string) ([]byte, error) {
		if asked++; asked == 1 {
			return nil, errors.New("signal 11")
		}
		return isolated(ctx, args...)
	}
	for want, runner := range map[string]func(context.Context, ...string) ([]byte, error){
		"the devices were left out: nothing can be projected for it: there is no device GONE0": isolated,
		"the devices were left out: the process that projects it ended: signal 11":             dying,
	} {
		found, err := probe.Projector{Again: runner}.Place(t.Context(), r, probe.Accelerators{Devices: usable})
		require.NoError(t, err)
		assert.Contains(t, found.Projection.Why, want)
		assert.Equal(t, project(t, path, m, r.Session).At, found.Projection.At)
		assert.Empty(t, found.Devices)
	}
}

// TestWhatStandsInTheWayIsSaid: each leaves the projection unknown, with the reason, and this process alive.
func TestWhatStandsInTheWayIsSaid(t *testing.T) {
	path, m := subject(t, "qwen3moe-20m")
	session := probe.Session{Context: length, Ubatch: 512}
	lying := session
	lying.ExpertsUsed = 1 << 20
	answers := func(out string, err error) func(context.Context, ...string) ([]byte, error) {
		return func(context.Context, ...string) ([]byte, error) { return []byte(out), err }
	}
	for _, test := range []struct {
		name    string
		request probe.Request
		again   func(context.Context, ...string) ([]byte, error)
		want    string
	}{
		{"metadata that a check of llama.cpp ends the process over", probe.Request{Model: m, Path: path, Session: lying}, isolated, "llama.cpp can't go on with it: "},
		{"a type that is none", probe.Request{Model: m, Path: path, Session: probe.Session{Context: 64, Ubatch: 64, TypeK: "q9"}}, isolated, `"q9" is no ggml type`},
		{"no context", probe.Request{Model: m, Path: path}, isolated, "is none"},
		{"no file", probe.Request{Model: m, Path: path + ".gone", Session: session}, isolated, "nothing can be projected for it"},
		{"a child that dies", probe.Request{Model: m, Path: path, Session: session}, answers("", errors.New("signal 11")), "the process that projects it ended: signal 11"},
		{"a child that prints garbage", probe.Request{Model: m, Path: path, Session: session}, answers("Segm", nil), "printed is no placement"},
		{"a child that answers for another session", probe.Request{Model: m, Path: path, Session: session}, answers(`{"projection":{"width":64}}`, nil), "for another session"},
		{"no model", probe.Request{}, isolated, "no model was named"},
	} {
		t.Run(test.name, func(t *testing.T) {
			found, err := probe.Projector{Again: test.again}.Place(t.Context(), test.request, probe.Accelerators{})
			require.NoError(t, err)
			assert.Zero(t, found.Projection.Width)
			assert.Contains(t, found.Projection.Why, test.want)
			t.Log(found.Projection.Why)
		})
	}
	ended, end := context.WithCancel(t.Context())
	end()
	_, err := probe.Projector{Again: isolated}.Place(ended, probe.Request{Model: m, Path: path, Session: session}, probe.Accelerators{})
	assert.ErrorIs(t, err, context.Canceled)
}
