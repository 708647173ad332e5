package experts

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/bmoe/bmoe/core/llama"
	"github.com/bmoe/bmoe/platform/pages"
)

// work is what the computing goroutine builds nodes out of. All that C reads lies in memory outside the Go heap, taken
// once; a graph call allocates nothing.
type work struct {
	region  *pages.Region
	tensors []llama.Tensor // nodes, views and ids of one batch
	used    int
	ids     []int32   // expert numbers of the batch's nodes
	input   []float32 // what the next layer's router is asked with
	scores  []float32 // what it answers
	idsUsed int

	graph *llama.Graph // its node list has room for maxNodes
	nodes []*llama.Tensor
	n     int
	ctx   uintptr

	scratch *pages.Region // gathered rows and results of wide nodes
	mem     []byte
	memUsed int

	stage  []*llama.Tensor // the graph's nodes of one routing
	items  []item
	batch  []int32 // items of the batch under way, as its nodes are ordered
	counts []int32 // rows per expert of a wide graph
	starts []int32 // where each expert's rows begin in rows
	rows   []int32
	order  []int32 // experts in use, most rows first
	ahead  []ahead
}

// maxNodes is how many matmuls one batch holds.
const maxNodes = 256

// init takes the memory. Each node needs the node itself, a view of the weights, ids and a view of the input.
func (w *work) init(s *Store) error {
	size := unsafe.Sizeof(llama.Tensor{}) * maxNodes * 4
	columns, experts := int64(0), 0
	for i := range s.tensors {
		columns, experts = max(columns, s.tensors[i].columns), max(experts, s.tensors[i].Experts)
	}
	r, err := pages.Alloc(int(size) + idBytes + 4*int(columns) + 4*experts)
	if err != nil {
		return fmt.Errorf("take memory for compute nodes: %w", err)
	}
	w.region = r
	mem := unsafe.Pointer(unsafe.SliceData(r.Bytes()))
	w.tensors = unsafe.Slice((*llama.Tensor)(mem), maxNodes*4)
	w.ids = unsafe.Slice((*int32)(unsafe.Add(mem, size)), idBytes/4)
	w.input = unsafe.Slice((*float32)(unsafe.Add(mem, size+idBytes)), columns)
	w.scores = unsafe.Slice((*float32)(unsafe.Add(mem, size+idBytes+uintptr(4*columns))), experts)
	w.ctx, w.graph = s.newGraph(maxNodes)
	w.nodes = unsafe.Slice((**llama.Tensor)(w.graph.Node), maxNodes)
	return nil
}

// idBytes holds the ids of a batch of narrow nodes, two to a node.
const idBytes = 2 * maxNodes * 4

func (w *work) free() error {
	var errs []error
	for _, r := range []*pages.Region{w.region, w.scratch} {
		if r != nil {
			errs = append(errs, r.Free())
		}
	}
	w.region, w.scratch = nil, nil
	return errors.Join(errs...)
}

func (w *work) reset() { w.used, w.idsUsed, w.n, w.memUsed = 0, 0, 0, 0 }

func (w *work) tensor(from *llama.Tensor) *llama.Tensor {
	t := &w.tensors[w.used]
	w.used++
	*t = *from
	return t
}

func (w *work) add(t *llama.Tensor) {
	w.nodes[w.n] = t
	w.n++
}

// run computes the batch.
func (s *Store) run(threads int) bool {
	w := &s.work
	if w.n == 0 {
		return true
	}
	w.graph.Nodes = int32(w.n)
	return s.exec(threads)
}

// execGraph computes the batch's graph on the host's backend.
func (s *Store) execGraph(threads int) bool {
	if s.threads != threads {
		s.lib.SetThreads(s.backend, threads)
		s.threads = threads
	}
	r, _, _ := purego.SyscallN(s.lib.GraphComputePtr, s.backend, uintptr(unsafe.Pointer(s.work.graph)))
	return int32(r) == llama.StatusSuccess
}
