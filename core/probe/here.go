package probe

import (
	"context"

	"github.com/bmoe/bmoe/core/llama"
	"github.com/bmoe/bmoe/core/machine"
)

// Here is how this machine is looked at. load opens the llama.cpp libraries beside the executable; what may end a process is
// asked of children, where again starts any.
func Here(load func() (*llama.Library, error), again Again) Instruments {
	return Instruments{
		Machine: Machine,
		Devices: func(context.Context, Request) ([]machine.Device, machine.Backends, error) {
			return nil, machine.Backends{}, nil
		},
		Processor: func(ctx context.Context, r Request, on machine.Profile) (read, wide machine.Fact[float64], err error) {
			available := on.Memory.Available.Or(0)
			if r.Memory > 0 {
				available = min(available, r.Memory)
			}
			threads := r.Threads
			if threads == 0 {
				threads = on.Cores.Physical.Or(1)
			}
			read, err = ReadRate(ctx, load, r.Model, threads, available)
			return read, wide, err
		},
		Placement: Projector{Load: load, Again: again}.Place,
		Drive:     Storage,
		Headroom:  Holder{again}.Headroom,
	}
}
