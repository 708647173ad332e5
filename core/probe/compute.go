package probe

import (
	"context"
	"fmt"

	"github.com/bmoe/bmoe/core/llama"
	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/model"
)

// sweep is how many bytes of weights the cores are measured with: more than most caches hold.
const sweep = 256 << 20

// ReadRate is how many bytes of weights a second the host computes with, one token wide: the matmul of the expert type that
// most of the model is made of. It takes half a second and memory for the sweep, an eighth of available at most, and is
// unknown with the reason where that can't be had. The only error is ctx's.
func ReadRate(ctx context.Context, load func() (*llama.Library, error), m *model.Profile, threads int, available int64) (machine.Fact[float64], error) {
	types := m.ExpertTypes()
	if len(types) == 0 {
		return machine.Unknown[float64]("the model has no experts"), nil
	}
	lib, err := load()
	if err != nil {
		return machine.Unknown[float64](err.Error()), nil
	}
	for t := range m.Experts() {
		if t.Type != types[0].Type {
			continue
		}
		memory := min(sweep, available/8)
		if least := 2 * int64(m.ExpertUsed) * t.SliceBytes(); memory < least {
			return machine.Unknown[float64](fmt.Sprintf("%d MiB to measure in are too few", memory>>20)), nil
		}
		rate, spread, err := lib.Rate(ctx, llama.ExpertMatmul{
			Type: int32(t.Type), Columns: t.Dims[0], Rows: t.Dims[1], Slice: t.SliceBytes(), Used: m.ExpertUsed, Threads: threads, Memory: memory,
		})
		switch {
		case ctx.Err() != nil:
			return machine.Fact[float64]{}, ctx.Err()
		case err != nil:
			return machine.Unknown[float64](err.Error()), nil
		}
		return machine.Known(rate, fmt.Sprintf("the matmul of one token with %s experts on %d threads, median of three samples that differ by %.2f", t.Type, threads, spread)), nil
	}
	return machine.Unknown[float64]("no expert tensor has the type that most are of"), nil
}
