package llama

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/bmoe/bmoe/platform/pages"
)

// ExpertMatmul is a matmul of one token with a few of many experts, as a layer of a model does it.
type ExpertMatmul struct {
	Type          int32 // ggml's number of the weights' type
	Columns, Rows int64 // elements of a row, rows of an expert
	Slice         int64 // bytes of an expert
	Used          int   // experts a token is routed to
	Threads       int
	Memory        int64 // bytes of weights to sweep; more than the processor's caches hold
}

const (
	matmulNodes  = 16 // matmuls in a graph
	matmulSample = 100 * time.Millisecond
)

// Rate is how many bytes of weights a second the host sweeps computing it: the median of three samples, each of a tenth of
// a second, and the spread of the three as largest over smallest. The weights are no model's; their values do not change
// how long they take.
func (l *Library) Rate(ctx context.Context, m ExpertMatmul) (bytesPerSecond, spread float64, err error) {
	experts := int(max(m.Memory/m.Slice, int64(m.Used)))
	if m.Slice <= 0 || m.Rows <= 0 || m.Columns <= 0 || m.Used <= 0 || m.Slice%m.Rows != 0 {
		return 0, 0, errors.New("the experts have no shape to measure with")
	}
	weights, err := pages.Alloc(experts * int(m.Slice))
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, weights.Free()) }()
	for i, b := 0, weights.Bytes(); i < len(b); i++ {
		b[i] = 0x11 // small numbers in every type, and every page touched
	}
	n := int(m.Columns) + int(m.Rows)*m.Used*matmulNodes
	floats, err := pages.Alloc(4 * (n + m.Used*matmulNodes))
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, floats.Free()) }()

	pool := l.NewThreadpool(m.Threads, 50)
	defer pool.Free()
	backend := l.NewCPUBackend(pool)
	if backend == 0 {
		return 0, 0, errors.New("the host's compute backend does not start")
	}
	defer l.BackendFree(backend)
	l.SetThreads(backend, m.Threads)
	graphCtx, graph := l.NewGraph(matmulNodes)
	defer l.FreeGraph(graphCtx)

	// The tensors are Go memory that C reads during the calls below; Go does not move it, and list keeps it reachable.
	at := unsafe.Pointer(unsafe.SliceData(floats.Bytes()))
	column, rows := uint64(4*m.Columns), uint64(4*m.Rows)
	input := &Tensor{Data: at, Ne: [4]int64{m.Columns, 1, 1, 1}, Nb: [4]uint64{4, column, column, column}}
	row := uint64(m.Slice / m.Rows)
	matrix := &Tensor{
		Type: m.Type, Data: unsafe.Pointer(unsafe.SliceData(weights.Bytes())), Ne: [4]int64{m.Columns, m.Rows, int64(experts), 1},
		Nb: [4]uint64{l.TypeSize(m.Type), row, uint64(m.Slice), uint64(m.Slice) * uint64(experts)},
	}
	ids := unsafe.Slice((*int32)(unsafe.Add(at, 4*n)), m.Used*matmulNodes)
	list := make([]*Tensor, 0, 2*matmulNodes)
	nodes := unsafe.Slice((**Tensor)(graph.Node), matmulNodes)
	used := uint64(4 * m.Used)
	for i := range matmulNodes {
		id := &Tensor{Type: typeI32, Data: unsafe.Pointer(&ids[i*m.Used]), Ne: [4]int64{int64(m.Used), 1, 1, 1}, Nb: [4]uint64{4, used, used, used}}
		all := rows * uint64(m.Used)
		out := &Tensor{
			Op: l.OpMulMatID, Flags: flagCompute, Data: unsafe.Add(at, 4*(int(m.Columns)+i*int(m.Rows)*m.Used)),
			Ne: [4]int64{m.Rows, int64(m.Used), 1, 1}, Nb: [4]uint64{4, rows, all, all},
			Src: [10]*Tensor{matrix, input, id},
		}
		list = append(list, id, out)
		nodes[i] = out
	}
	graph.Nodes = matmulNodes

	next := int32(0)
	var samples []float64
	for range 4 { // the first warms up
		var bytes int64
		start := time.Now()
		for time.Since(start) < matmulSample {
			if err := ctx.Err(); err != nil {
				return 0, 0, err
			}
			for i := range ids { // each expert in turn, so that none is still in a cache when it comes again
				ids[i] = next
				next = (next + 1) % int32(experts)
			}
			if r, _, _ := purego.SyscallN(l.GraphComputePtr, backend, uintptr(unsafe.Pointer(graph))); int32(r) != StatusSuccess {
				return 0, 0, errors.New("the host did not compute the matmul")
			}
			bytes += int64(len(ids)) * m.Slice
		}
		samples = append(samples, float64(bytes)/time.Since(start).Seconds())
	}
	runtime.KeepAlive(list)
	samples = samples[1:]
	slices.Sort(samples)
	return samples[1], samples[2] / samples[0], nil
}
