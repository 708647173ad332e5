package llama

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
)

// ExpertMatmul is a matmul with a few of many experts, as a layer of a model does it.
type ExpertMatmul struct {
	Type          int32 // ggml's number of the weights' type
	Columns, Rows int64 // elements of a row, rows of an expert
	Slice         int64 // bytes of an expert
	Used          int   // experts that a token is routed to
	Width         int   // tokens
	Experts       int   // there are at the most; 0: any number
	Memory        int64 // bytes of weights to sweep; more than the processor's caches hold
	Threads       int   // of the host
}

const (
	matmulSample = 100 * time.Millisecond
	mostNodes    = 256 // matmuls in a graph
	distinctRows = 61  // of weights. Prime, so that a row taken for another is found out
)

// ErrUnsupported says that a device does not run the expert matmul on weights of that type.
var ErrUnsupported = errors.New("it does not run the expert matmul")

// ErrUnpriced says that a crossing can't be told from what it comes with.
var ErrUnpriced = errors.New("it has too little memory for more than one matmul, so what handing one over takes is not known")

// unmade are the types that ggml_quantize_chunk does not make, and whose experts no model has.
var unmade = []string{"q8_1", "q8_K", "i8", "i16", "i32", "i64", "f64"}

// Sweep is an ExpertMatmul on one device: weights in a buffer of its own, and a graph over them that reads each once.
type Sweep struct {
	lib     *Library
	backend uintptr
	pool    *Threadpool // of the host; nil elsewhere
	weights [2]uintptr  // context, buffer
	rest    [2]uintptr
	graph   uintptr
	input   uintptr
	out     uintptr // of the first matmul
	inputs  []float32
	outputs int
	swept   int64 // bytes of weights that a graph reads
	nodes   int

	Repacked bool // the device takes the weights only in a layout of its own
}

// Weighable says whether a device runs the matmul, and in what buffer type the weights are then: its own or, if repacked,
// one that rearranges them.
func (l *Library) Weighable(dev uintptr, m ExpertMatmul) (buft uintptr, repacked bool, err error) {
	ctx := l.Init(initParams{Size: 1 << 20, NoAlloc: true})
	defer l.GGMLFree(ctx)
	types := []uintptr{l.DevBufferType(dev)}
	if p := l.ProcAddress(l.DevRegistry(dev), "ggml_backend_dev_get_extra_bufts"); p != 0 {
		if list, _, _ := purego.SyscallN(p, dev); list != 0 {
			for i := 0; ; i++ { // ends with a null
				t := *(*uintptr)(unsafe.Add(Pointer(list), uintptr(i)*unsafe.Sizeof(list)))
				if t == 0 {
					break
				}
				types = append(types, t)
			}
		}
	}
	m.Experts = m.Used
	for i, t := range types {
		weights, _, _, out := l.matmulNode(ctx, m, m.Used)
		// What a device runs can depend on where the weights are: an empty buffer says where.
		tensor, place := (*Tensor)(Pointer(weights)), l.BuftAlloc(t, 0)
		tensor.Buffer = place
		runs := l.DevSupportsOp(dev, out)
		tensor.Buffer = 0
		if place != 0 {
			l.BufferFree(place)
		}
		if runs {
			return t, i > 0, nil
		}
	}
	return 0, false, ErrUnsupported
}

// matmulNode makes the tensors of one matmul without giving them memory.
func (l *Library) matmulNode(ctx uintptr, m ExpertMatmul, experts int) (weights, input, ids, out uintptr) {
	weights = l.NewTensor(ctx, m.Type, 3, &[]int64{m.Columns, m.Rows, int64(experts)}[0])
	input = l.NewTensor(ctx, TypeF32, 3, &[]int64{m.Columns, 1, int64(m.Width)}[0])
	ids = l.NewTensor(ctx, typeI32, 2, &[]int64{int64(m.Used), int64(m.Width)}[0])
	return weights, input, ids, l.MulMatID(ctx, weights, input, ids)
}

// NewSweep allocates the matmul on a device and fills it with weights of the type, made of random numbers. On the host it
// runs on m.Threads threads.
func (l *Library) NewSweep(dev uintptr, m ExpertMatmul) (s *Sweep, err error) {
	if m.Slice <= 0 || m.Rows <= 0 || m.Columns <= 0 || m.Used <= 0 || m.Width <= 0 || m.Slice%m.Rows != 0 {
		return nil, errors.New("the experts have no shape to measure with")
	}
	if slices.Contains(unmade, l.TypeName(m.Type)) {
		return nil, fmt.Errorf("no weights of type %s can be made", l.TypeName(m.Type))
	}
	experts := int(max(m.Memory/m.Slice, int64(m.Used)))
	if m.Experts > 0 {
		experts = min(experts, max(m.Experts, m.Used))
	}
	nodes := 1
	if m.Width == 1 {
		nodes = max(min(experts/m.Used, mostNodes), 1)
	}
	experts = min(experts, nodes*m.Used*m.Width)
	buft, repacked, err := l.Weighable(dev, m)
	if err != nil {
		return nil, err
	}
	s = &Sweep{lib: l, nodes: nodes, swept: int64(min(experts, nodes*m.Used*m.Width)) * m.Slice, Repacked: repacked}
	defer func() {
		if err != nil {
			s.Free()
			s = nil
		}
	}()
	l.captureErrors()
	if dev == l.cpuDevice {
		s.pool = l.NewThreadpool(m.Threads, 50)
		if s.backend = l.NewCPUBackend(s.pool); s.backend != 0 {
			l.SetThreads(s.backend, m.Threads)
		}
	} else {
		s.backend = l.BackendInit(dev, 0)
	}
	said := l.captured()
	if s.backend == 0 {
		return s, fmt.Errorf("it does not start: %s", reason(said, "it gave no reason"))
	}

	s.weights[0] = l.Init(initParams{Size: 1 << 16, NoAlloc: true})
	weights := l.NewTensor(s.weights[0], m.Type, 3, &[]int64{m.Columns, m.Rows, int64(experts)}[0])
	if err := s.allocate(&s.weights, buft, int64(experts)*m.Slice); err != nil {
		return s, err
	}
	l.BufferUsage(s.weights[1], usageWeights)
	s.rest[0] = l.Init(initParams{Size: uintptr(nodes)*2048 + 1<<20, NoAlloc: true})
	s.graph = l.calls.NewGraph(s.rest[0], uintptr(4*nodes+16), false)
	s.input = l.NewTensor(s.rest[0], TypeF32, 3, &[]int64{m.Columns, 1, int64(m.Width)}[0])
	var ids []uintptr
	for i := range nodes {
		id := l.NewTensor(s.rest[0], typeI32, 2, &[]int64{int64(m.Used), int64(m.Width)}[0])
		out := l.MulMatID(s.rest[0], weights, s.input, id)
		l.BuildForward(s.graph, out)
		if i == 0 {
			s.out = out
		}
		ids = append(ids, id)
	}
	if err := s.allocate(&s.rest, l.DevBufferType(dev), 0); err != nil {
		return s, err
	}
	s.fill(m, experts, weights, ids)
	s.outputs = int(m.Rows) * m.Used * m.Width
	return s, nil
}

// allocate gives memory of a buffer type to every tensor of a context.
func (s *Sweep) allocate(in *[2]uintptr, buft uintptr, size int64) error {
	s.lib.captureErrors()
	in[1] = s.lib.AllocTensors(in[0], buft)
	said := s.lib.captured()
	if in[1] == 0 {
		return fmt.Errorf("it allocates no %d MiB: %s", size>>20, reason(said, "it gave no buffer"))
	}
	return nil
}

// fill writes weights, inputs and routes, the same ones wherever it is called.
func (s *Sweep) fill(m ExpertMatmul, experts int, weights uintptr, ids []uintptr) {
	l := s.lib
	random := rand.New(rand.NewPCG(1, 2))
	normal := func(n int64) []float32 {
		list := make([]float32, n)
		for i := range list {
			list[i] = float32(random.NormFloat64())
		}
		return list
	}
	rows := min(distinctRows, m.Rows)
	row := m.Slice / m.Rows
	made := make([]byte, rows*row)
	floats, even := normal(rows*m.Columns), make([]float32, m.Columns)
	for i := range even {
		even[i] = 1 // some types weigh what they lose, and take no weights for an answer
	}
	l.QuantizeChunk(m.Type, Addr(floats), Addr(made), 0, rows, m.Columns, Addr(even))
	slice := make([]byte, m.Slice)
	for e := range experts {
		for r := range m.Rows {
			from := (r + int64(e)*17) % rows * row
			copy(slice[r*row:], made[from:from+row])
		}
		l.TensorSet(weights, Addr(slice), uintptr(int64(e)*m.Slice), uintptr(m.Slice))
	}
	s.inputs = normal(m.Columns * int64(m.Width))
	l.TensorSet(s.input, Addr(s.inputs), 0, uintptr(4*len(s.inputs)))
	next := 0
	route := make([]int32, m.Used*m.Width)
	for _, id := range ids {
		for i := range route { // each expert in turn, so that none is still in a cache when it comes again
			route[i] = int32(next % experts)
			next++
		}
		l.TensorSet(id, Addr(route), 0, uintptr(4*len(route)))
	}
	runtime.KeepAlive(floats)
	runtime.KeepAlive(even)
}

// compute runs the graph once.
func (s *Sweep) compute() error {
	s.lib.captureErrors()
	status, _, _ := purego.SyscallN(s.lib.GraphComputePtr, s.backend, s.graph)
	if said := s.lib.captured(); int32(status) != StatusSuccess {
		return fmt.Errorf("it does not compute the matmul: %s", reason(said, fmt.Sprintf("status %d", int32(status))))
	}
	return nil
}

// Rate is how many bytes of weights a second the device sweeps computing it: the median of three samples, each of a tenth of
// a second, and the spread of the three as largest over smallest.
func (s *Sweep) Rate(ctx context.Context) (bytesPerSecond, spread float64, err error) {
	seconds, spread, err := sampled(ctx, s.compute)
	if err != nil {
		return 0, 0, err
	}
	return float64(s.swept) / seconds, spread, nil
}

// sampled is what a call takes: the median of three samples of a tenth of a second, after one that warms up.
func sampled(ctx context.Context, call func() error) (seconds, spread float64, err error) {
	var samples []float64
	for range 4 {
		calls := 0
		start := time.Now()
		for calls == 0 || time.Since(start) < matmulSample {
			if err := ctx.Err(); err != nil {
				return 0, 0, err
			}
			if err := call(); err != nil {
				return 0, 0, err
			}
			calls++
		}
		samples = append(samples, time.Since(start).Seconds()/float64(calls))
	}
	samples = samples[1:]
	slices.Sort(samples)
	return samples[1], samples[2] / samples[0], nil
}

// Answer is the result of the first matmul: Rows of every expert used of every token.
func (s *Sweep) Answer() ([]float32, error) {
	if err := s.compute(); err != nil {
		return nil, err
	}
	answer := make([]float32, s.outputs)
	s.lib.TensorGet(s.out, Addr(answer), 0, uintptr(4*len(answer)))
	return answer, nil
}

// Crossing is what handing one token's input over to the device and its result back takes, halved: the time of a graph of
// one matmul with both, less what a matmul takes in a graph of many. s has a width of one and more than one matmul.
func (s *Sweep) Crossing(ctx context.Context) (time.Duration, error) {
	if s.nodes < 2 {
		return 0, ErrUnpriced
	}
	many, _, err := sampled(ctx, s.compute)
	if err != nil {
		return 0, err
	}
	graph := (*Graph)(Pointer(s.graph))
	nodes := graph.Nodes
	graph.Nodes = 1
	defer func() { graph.Nodes = nodes }()
	one, _, err := sampled(ctx, s.compute)
	if err != nil {
		return 0, err
	}
	answer := make([]float32, s.outputs)
	there, _, err := sampled(ctx, func() error {
		s.lib.TensorSet(s.input, Addr(s.inputs), 0, uintptr(4*len(s.inputs)))
		if err := s.compute(); err != nil {
			return err
		}
		s.lib.TensorGet(s.out, Addr(answer), 0, uintptr(4*len(answer)))
		return nil
	})
	if err != nil {
		return 0, err
	}
	matmul := max(many-one, 0) / float64(s.nodes-1)
	return time.Duration(max(there-matmul, 0) / 2 * float64(time.Second)), nil
}

// Free gives everything back.
func (s *Sweep) Free() {
	for _, m := range [][2]uintptr{s.rest, s.weights} {
		if m[1] != 0 {
			s.lib.BufferFree(m[1])
		}
		if m[0] != 0 {
			s.lib.GGMLFree(m[0])
		}
	}
	if s.backend != 0 {
		s.lib.BackendFree(s.backend)
	}
	if s.pool != nil {
		s.pool.Free()
	}
	*s = Sweep{lib: s.lib}
}
