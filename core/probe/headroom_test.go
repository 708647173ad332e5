package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/machine"
)

const mib = int64(1 << 20)

// fakeHoard is a system that takes memory back beyond a point, or gives no more.
type fakeHoard struct {
	held, takes, gives int64 // bytes; takes and gives 0: never
	broken             error
	freed              bool
}

func (h *fakeHoard) grow(n int64) error {
	if h.gives > 0 && h.held+n > h.gives {
		return errors.New("out of memory")
	}
	h.held += n
	return nil
}

func (h *fakeHoard) inMemory() (int64, error) {
	const own = 30 * mib
	if h.takes > 0 {
		return own + min(h.held, h.takes), h.broken
	}
	return own + h.held, h.broken
}

func (h *fakeHoard) free() { h.freed = true }

// A hold ends at the first sign of loss, at a refusal or at its ceiling, says how much was kept, and gives all back.
func TestHold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hoard *fakeHoard
		kept  [2]int64 // MiB, at least and at most
		says  string
	}{
		"all is kept":           {&fakeHoard{}, [2]int64{6400, 6400}, "no more was tried than the ceiling"},
		"some is taken back":    {&fakeHoard{takes: 3000 * mib}, [2]int64{2900, 3000}, "the first were taken back"},
		"the first is taken":    {&fakeHoard{takes: 1 * mib}, [2]int64{0, 0}, "the first were taken back"},
		"the system has enough": {&fakeHoard{gives: 1000 * mib}, [2]int64{900, 1000}, "gave no more: out of memory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			require.NoError(t, hold(holdRequest{6400 * mib, "the ceiling"}, c.hoard, json.NewEncoder(&out).Encode))
			last, ok := lastHeld(out.Bytes())
			require.True(t, ok)
			assert.True(t, last.Over)
			assert.GreaterOrEqual(t, last.Kept, c.kept[0]*mib)
			assert.LessOrEqual(t, last.Kept, c.kept[1]*mib)
			assert.Contains(t, last.Why, c.says)
			assert.True(t, c.hoard.freed)
			assert.LessOrEqual(t, c.hoard.held-last.Kept, 100*mib, "it stops at the first sign")
		})
	}
	h := &fakeHoard{broken: errors.New("no /proc")}
	assert.ErrorContains(t, hold(holdRequest{mib, ""}, h, func(any) error { return nil }), "no /proc")
	assert.True(t, h.freed)
	h = &fakeHoard{}
	gone := errors.New("nobody listens")
	assert.ErrorIs(t, hold(holdRequest{100 * mib, ""}, h, func(any) error { return gone }), gone)
	assert.True(t, h.freed)
}

// How far a hold may go: never to where the system would end a process for it.
func TestHoldable(t *testing.T) {
	t.Parallel()
	of := func(available, total int64, p machine.Fact[machine.Pressure]) machine.Memory {
		return machine.Memory{Available: machine.Known(available*mib, ""), Total: machine.Known(total*mib, ""), Pressure: p}
	}
	for name, c := range map[string]struct {
		on   machine.Memory
		want int64
	}{
		"pressure kills":                  {of(3200, 8000, machine.Known(machine.Kills, "")), 3100},
		"nobody knows what pressure does": {of(3200, 8000, machine.Unknown[machine.Pressure]("")), 3100},
		"pressure compresses":             {of(3200, 8000, machine.Known(machine.Compresses, "")), 7750},
		"pressure swaps":                  {of(3200, 8000, machine.Known(machine.Swaps, "")), 7750},
		"little":                          {of(640, 8000, machine.Known(machine.Kills, "")), 576},
	} {
		r, err := holdable(c.on)
		require.NoError(t, err, name)
		assert.Equal(t, c.want*mib, r.Ceiling, name)
	}
	_, err := holdable(of(70, 8000, machine.Known(machine.Kills, "")))
	assert.ErrorContains(t, err, "too few")
	_, err = holdable(machine.Memory{Available: machine.Unknown[int64]("no /proc/meminfo")})
	assert.ErrorContains(t, err, "no /proc/meminfo")
}

// What a child says is taken as far as it goes, whatever became of the child.
func TestHeadroom(t *testing.T) {
	t.Parallel()
	on := machine.Memory{Available: machine.Known(3200*mib, ""), Total: machine.Known(8000*mib, "")}
	for name, c := range map[string]struct {
		out  string
		err  error
		kept int64 // MiB; 0: unknown
		from string
	}{
		"it ended well":                   {`{"kept":104857600}` + "\n" + `{"kept":209715200,"over":true,"why":"held and kept"}` + "\n", nil, 200, "held and kept"},
		"it was ended":                    {`{"kept":104857600}` + "\n" + `{"kept":2097`, errors.New("signal: killed"), 100, "ended when it asked for more: signal: killed"},
		"it said nothing":                 {"", errors.New("exit status 1"), 0, "ended: exit status 1"},
		"it said garbage":                 {"hello\n{}x\n", nil, 0, "did not say how much"},
		"more than there is":              {`{"kept":1048576000000,"over":true,"why":"held"}` + "\n", nil, 8000, "held"},
		"it was slow":                     {`{"kept":104857600,"over":true,"late":true,"why":"slow"}` + "\n", nil, 0, "100 MiB were held and kept when the time was over"},
		"it was too slow":                 {`{"kept":104857600}` + "\n", fmt.Errorf("%w 2m", ErrNoAnswer), 0, "when the time was over"},
		"slow, and past what is reported": {`{"kept":5242880000,"over":true,"late":true,"why":"slow"}` + "\n", nil, 5000, "slow"},
		"it went away early":              {`{"kept":104857600}` + "\n", nil, 100, "went away before it was done"},
	} {
		asked := ""
		fact, err := Holder{func(_ context.Context, args ...string) ([]byte, error) {
			asked = strings.Join(args, " ")
			return []byte(c.out), c.err
		}}.Headroom(t.Context(), on, func(float64) {})
		require.NoError(t, err, name)
		assert.Contains(t, asked, ChildHeadroom+` {"ceiling":`)
		assert.Equal(t, c.kept > 0, fact.Known(), name)
		assert.Equal(t, c.kept*mib, fact.Or(0), name)
		assert.Contains(t, fact.From(), c.from, name)
	}
	fact, err := Holder{}.Headroom(t.Context(), on, func(float64) {})
	require.NoError(t, err)
	assert.Contains(t, fact.From(), "no other process could be started")
}

// The real hoard fills what it takes, and the account of this process shows it.
func TestRegionsAreHeld(t *testing.T) {
	t.Parallel()
	var h regions
	before, err := h.inMemory()
	if err != nil {
		t.Logf("this system says nothing of it: %v", err)
		return
	}
	require.NoError(t, h.grow(96*mib))
	after, err := h.inMemory()
	require.NoError(t, err)
	assert.GreaterOrEqual(t, after-before, 64*mib, "other tests give memory back meanwhile")
	assert.NotContains(t, string(h.list[0].Bytes()), strings.Repeat("\x00", 64), "no page is left as it came")
	h.free()
	var out bytes.Buffer
	assert.ErrorContains(t, headroomChild("no JSON", &out), ChildHeadroom)
	require.NoError(t, headroomChild(`{"ceiling":33554432,"why":"that was asked for"}`, &out))
	last, ok := lastHeld(out.Bytes())
	require.True(t, ok)
	assert.True(t, last.Over)
}
