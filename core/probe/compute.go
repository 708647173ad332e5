package probe

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/bmoe/bmoe/core/llama"
	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/model"
)

// sweep is how many bytes of weights a device is measured with: more than most caches hold.
const sweep = 256 << 20

// Widths are how many tokens wide the matmul is measured: what an answer needs, and what a prompt needs.
const (
	narrow = 1
	wide   = 128
)

// matmul is one shape of the model's expert matmul.
type matmul struct {
	Type    string `json:"type"`   // for a person
	Number  int32  `json:"number"` // ggml's, of the type
	Columns int64  `json:"columns"`
	Rows    int64  `json:"rows"`
	Slice   int64  `json:"slice"` // bytes of an expert
	Experts int    `json:"experts"`
	Used    int    `json:"used"` // experts that a token is routed to
}

// matmulsOf are the shapes of a model's expert matmuls, each once: first of the type that carries most bytes of experts, and
// of one type first the one that does.
func matmulsOf(m *model.Profile) []matmul {
	if m == nil {
		return nil
	}
	bytes := map[matmul]int64{}
	for t := range m.Experts() {
		bytes[matmul{
			Type: t.Type.String(), Number: int32(t.Type), Columns: t.Dims[0], Rows: t.Dims[1], Slice: t.SliceBytes(),
			Experts: t.Slices(), Used: min(m.UsedAt(t.Layer), t.Slices()),
		}] += t.Bytes()
	}
	rank := map[int32]int{}
	for i, t := range m.ExpertTypes() {
		rank[int32(t.Type)] = i
	}
	var all []matmul
	for shape := range bytes {
		all = append(all, shape)
	}
	slices.SortFunc(all, func(a, b matmul) int {
		return cmp.Or(cmp.Compare(rank[a.Number], rank[b.Number]), cmp.Compare(bytes[b], bytes[a]),
			cmp.Compare(a.Columns, b.Columns), cmp.Compare(a.Rows, b.Rows), cmp.Compare(a.Experts, b.Experts), cmp.Compare(a.Used, b.Used))
	})
	return all
}

// as is the matmul as llama.cpp is asked for it. memory is for weights, in bytes.
func (m matmul) as(width int, memory int64, threads int) llama.ExpertMatmul {
	return llama.ExpertMatmul{
		Type: m.Number, Columns: m.Columns, Rows: m.Rows, Slice: m.Slice, Used: m.Used, Experts: m.Experts,
		Width: width, Memory: memory, Threads: threads,
	}
}

func (m matmul) String() string {
	return fmt.Sprintf("%s experts of %d x %d", m.Type, m.Rows, m.Columns)
}

// allowance is the memory that a matmul may be measured in, on the host as on a device, in bytes: results compare where it is
// the same.
func allowance(r Request, on machine.Profile) int64 {
	available := on.Memory.Available.Or(0)
	if r.Memory > 0 {
		available = min(available, r.Memory)
	}
	return min(sweep, available/8)
}

// threadsOf is on how many threads a run would compute.
func threadsOf(r Request, on machine.Profile) int {
	if r.Threads > 0 {
		return r.Threads
	}
	return on.Cores.Physical.Or(1)
}

// Processor measures the host. Load opens the libraries beside the executable.
type Processor struct {
	Load func() (*llama.Library, error)
}

// Rates are how many bytes of weights a second the host computes with, in the matmul of the expert type that most of the
// model is made of: one token wide, as an answer is made, and 128 wide, as a prompt is read. They take a second or two and
// memory for the weights, an eighth of what is available at most, and are unknown with the reason where that can't be had.
// The only error is ctx's.
func (p Processor) Rates(ctx context.Context, r Request, on machine.Profile) (read, broad machine.Fact[float64], err error) {
	unknown := func(why string) (a, b machine.Fact[float64], err error) {
		return machine.Unknown[float64](why), machine.Unknown[float64](why), ctx.Err()
	}
	shapes := matmulsOf(r.Model)
	if len(shapes) == 0 {
		return unknown("the model has no experts")
	}
	lib, err := p.Load()
	if err != nil {
		return unknown(err.Error())
	}
	memory, threads := allowance(r, on), threadsOf(r, on)
	if read, err = rate(ctx, lib, lib.CPUDevice(), shapes[0], narrow, memory, threads); err != nil {
		return unknown(err.Error())
	}
	if broad, err = rate(ctx, lib, lib.CPUDevice(), shapes[0], wide, memory, threads); err != nil {
		return read, machine.Unknown[float64](err.Error()), ctx.Err()
	}
	return read, broad, nil
}

// rate is the rate of one matmul on a device, in bytes of weights a second.
func rate(ctx context.Context, lib *llama.Library, dev uintptr, m matmul, width int, memory int64, threads int) (machine.Fact[float64], error) {
	if least := 2 * int64(m.Used) * m.Slice; memory < least {
		return machine.Unknown[float64](fmt.Sprintf("%d MiB to measure in are too few", memory>>20)), nil
	}
	s, err := lib.NewSweep(dev, m.as(width, memory, threads))
	if err != nil {
		return machine.Fact[float64]{}, err
	}
	defer s.Free()
	return rateOf(ctx, s, m, width, on(lib, dev, threads))
}

// on says what computes, for a person.
func on(lib *llama.Library, dev uintptr, threads int) string {
	switch {
	case dev != lib.CPUDevice():
		return ""
	case threads == 1:
		return " on one thread"
	}
	return fmt.Sprintf(" on %d threads", threads)
}

func rateOf(ctx context.Context, s *llama.Sweep, m matmul, width int, where string) (machine.Fact[float64], error) {
	tokens := "one token"
	if width > 1 {
		tokens = fmt.Sprintf("%d tokens", width)
	}
	rate, spread, err := s.Rate(ctx)
	if err != nil {
		return machine.Fact[float64]{}, err
	}
	return machine.Known(rate, fmt.Sprintf("the matmul of %s with %s%s, median of three samples that differ by %.2f", tokens, m, where, spread)), nil
}
