package probe

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/core/plan"
)

// recorder is instruments that write down the order they were used in.
func recorder(used *[]string) Instruments {
	use := func(name string) { *used = append(*used, name) }
	return Instruments{
		Machine: func() (machine.Profile, error) {
			use("machine")
			return machine.Profile{Name: "seen", Memory: machine.Memory{Available: machine.Known(int64(1<<30), "")}}, nil
		},
		Devices: func(_ context.Context, _ Request, on machine.Profile) (Accelerators, error) {
			use("devices of " + on.Name)
			return Accelerators{
				Devices: []machine.Device{{Name: "GPU0"}}, Modules: []string{"gpu.so"},
				Backends: machine.Backends{Linked: machine.Known(0, ""), Loaded: machine.Known(1, "")},
			}, nil
		},
		Processor: func(_ context.Context, _ Request, on machine.Profile) (read, wide machine.Fact[float64], err error) {
			use("processor of " + on.Name)
			return machine.Known(1e9, ""), machine.Known(2e9, ""), nil
		},
		Placement: func(_ context.Context, r Request, among Accelerators) (plan.Placement, error) {
			use("placement over " + among.Devices[0].Name + " of " + strings.Join(among.Modules, " "))
			return plan.Placement{Projection: plan.Projection{Width: r.Session.Ubatch}}, nil
		},
		Drive: func(_ context.Context, path string, _ *model.Profile, _ bool, tell func(float64)) (machine.Storage, error) {
			use("drive " + path)
			tell(1)
			return machine.Storage{From: "read"}, nil
		},
		Headroom: func(_ context.Context, on machine.Memory, _ func(float64)) (machine.Fact[int64], error) {
			use("held")
			return machine.Known(on.Available.Or(0)/2, "held"), nil
		},
	}
}

func sharded() *model.Profile {
	return &model.Profile{
		Shards:  []model.Shard{{Name: "m-1.gguf"}, {Name: "m-2.gguf"}},
		Tensors: []model.Tensor{{Name: "blk.0.ffn_up_exps.weight", Kind: model.Up, Shard: 1, Dims: [4]int64{32, 32, 4, 1}}},
	}
}

// One order, whatever is asked for; and what is not asked for says why it is unknown.
func TestLook(t *testing.T) {
	t.Parallel()
	m := sharded()
	saved := machine.Profile{Name: "saved", Devices: []machine.Device{{Name: "GPU9", Usable: machine.Yes("it was")}}}
	untried := machine.Profile{Name: "saved", Devices: []machine.Device{{Name: "GPU8"}}}
	for name, c := range map[string]struct {
		request Request
		used    string
		storage string
	}{
		"a plan": {Request{Model: m, Path: "dir/m-1.gguf", Measure: true},
			"machine, devices of seen, processor of seen, placement over GPU0 of gpu.so, drive dir/m-2.gguf", "read"},
		"and memory held": {Request{Model: m, Path: "dir/m-1.gguf", Measure: true, Hold: true},
			"machine, devices of seen, processor of seen, placement over GPU0 of gpu.so, drive dir/m-2.gguf, held", "read"},
		"free facts":                           {Request{Model: m, Path: "dir/m-1.gguf"}, "machine, devices of seen, placement over GPU0 of gpu.so", "--no-probe-io"},
		"a profile of a model":                 {Request{Model: m, Measure: true}, "machine, devices of seen, processor of seen", "the model is not here"},
		"the machine alone":                    {Request{Measure: true}, "machine, devices of seen", "no model was named"},
		"a saved machine":                      {Request{Model: m, Path: "dir/m-1.gguf", Measure: true, Hold: true, Known: &saved}, "devices of saved, placement over GPU9 of gpu.so", ""},
		"a saved machine, its devices untried": {Request{Model: m, Path: "dir/m-1.gguf", Measure: true, Known: &untried}, "placement over GPU8 of ", ""},
		"both of them from a file":             {Request{Model: m, Measure: true, Known: &saved}, "", ""},
	} {
		var used []string
		found, err := recorder(&used).Look(t.Context(), c.request)
		require.NoError(t, err, name)
		assert.Equal(t, c.used, strings.Join(used, ", "), name)
		assert.Equal(t, c.storage, found.Machine.Storage.From, name)
		assert.Len(t, found.Steps, len(used), name)
		assert.Equal(t, c.request.Hold && c.request.Known == nil, found.Machine.Memory.Keepable.Known(), name)
		if c.request.Path == "" {
			assert.Equal(t, "the model is not here", found.Placement.Projection.Why, name)
		}
		if c.request.Known == nil && !c.request.Measure {
			assert.Equal(t, "--no-probe-io", found.Machine.Cores.ReadRate.From(), name)
		}
	}
}

// A model without experts has no drive worth reading.
func TestLookAtADenseModel(t *testing.T) {
	t.Parallel()
	var used []string
	m := sharded()
	m.Tensors = nil
	found, err := recorder(&used).Look(t.Context(), Request{Model: m, Path: "m.gguf", Measure: true})
	require.NoError(t, err)
	assert.NotContains(t, strings.Join(used, " "), "drive")
	assert.Equal(t, "the model has no experts", found.Machine.Storage.From)
}

// An interrupt ends the look at the step it is in; what a machine does not say is a warning that ends nothing.
func TestLookEnds(t *testing.T) {
	t.Parallel()
	var used []string
	ctx, cancel := context.WithCancel(t.Context())
	in := recorder(&used)
	in.Devices = func(context.Context, Request, machine.Profile) (Accelerators, error) {
		cancel()
		return Accelerators{}, ctx.Err()
	}
	_, err := in.Look(ctx, Request{Model: sharded(), Path: "m.gguf", Measure: true})
	assert.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, []string{"machine"}, used)

	used = nil
	in = recorder(&used)
	in.Machine = func() (machine.Profile, error) { return machine.Profile{Name: "silent"}, errors.New("no /proc") }
	told := 0
	found, err := in.Look(t.Context(), Request{Model: sharded(), Path: "m.gguf", Measure: true, Tell: func(string, float64) { told++ }})
	assert.EqualError(t, err, "no /proc")
	assert.Equal(t, "silent", found.Machine.Name)
	assert.Len(t, found.Steps, 5)
	assert.GreaterOrEqual(t, told, 5)
	assert.GreaterOrEqual(t, found.Took(), found.Steps[0].Took)
}

// A context that no memory here holds is not projected, which would take minutes; one that might be held is.
func TestLookLeavesTheImpossibleUnprojected(t *testing.T) {
	t.Parallel()
	m := sharded()
	m.Tensors = append(m.Tensors, model.Tensor{Name: "blk.0.attn_k.weight", Dims: [4]int64{64, 512, 1, 1}}, model.Tensor{Name: "blk.0.attn_v.weight", Dims: [4]int64{64, 512, 1, 1}})
	for context, projected := range map[int]bool{4096: true, 1 << 20: true, 1<<31 - 1: false} {
		var used []string
		in := recorder(&used)
		in.Machine = func() (machine.Profile, error) {
			return machine.Profile{Memory: machine.Memory{Total: machine.Known(int64(1<<30), "")}}, nil
		}
		found, err := in.Look(t.Context(), Request{Model: m, Path: "m.gguf", Session: Session{Context: context, Ubatch: context}})
		require.NoError(t, err)
		assert.Equal(t, projected, strings.Contains(strings.Join(used, " "), "placement"), context)
		assert.Equal(t, projected, found.Placement.Projection.Why == "", found.Placement.Projection.Why)
	}
}
