package llama

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync"

	"github.com/ebitengine/purego"

	"github.com/bmoe/bmoe/platform/dynlib"
)

// ErrMissing says that the libraries are not beside the executable.
var ErrMissing = errors.New("the llama.cpp libraries are missing")

// calls are the C functions that are used, each found in the library its tag names first. Parameters and results are
// those of the pinned headers; handles are uintptr.
type calls struct {
	// ggml-base
	BackendInit       func(dev, params uintptr) uintptr                                                   `c:"ggml-base:ggml_backend_dev_init"`
	BackendFree       func(backend uintptr)                                                               `c:"ggml-base:ggml_backend_free"`
	BufferInit        func(buft uintptr, i BufferInterface, ctx, size uintptr) uintptr                    `c:"ggml-base:ggml_backend_buffer_init"`
	BuftIsHost        func(buft uintptr) bool                                                             `c:"ggml-base:ggml_backend_buft_is_host"`
	CPUBufferType     func() uintptr                                                                      `c:"ggml-base:ggml_backend_cpu_buffer_type"`
	DevName           func(dev uintptr) string                                                            `c:"ggml-base:ggml_backend_dev_name"`
	DevDescription    func(dev uintptr) string                                                            `c:"ggml-base:ggml_backend_dev_description"`
	DevMemory         func(dev uintptr, free, total *uintptr)                                             `c:"ggml-base:ggml_backend_dev_memory"`
	DevType           func(dev uintptr) int32                                                             `c:"ggml-base:ggml_backend_dev_type"`
	DevRegistry       func(dev uintptr) uintptr                                                           `c:"ggml-base:ggml_backend_dev_backend_reg"`
	ProcAddress       func(reg uintptr, name string) uintptr                                              `c:"ggml-base:ggml_backend_reg_get_proc_address"`
	Init              func(initParams) uintptr                                                            `c:"ggml-base:ggml_init"`
	NewGraph          func(ctx, size uintptr, grads bool) uintptr                                         `c:"ggml-base:ggml_new_graph_custom"`
	OpName            func(op int32) string                                                               `c:"ggml-base:ggml_op_name"`
	TypeName          func(typ int32) string                                                              `c:"ggml-base:ggml_type_name"`
	ThreadpoolDefault func(n int32) threadpoolParams                                                      `c:"ggml-base:ggml_threadpool_params_default"`
	GGMLLogSet        func(callback, data uintptr)                                                        `c:"ggml-base:ggml_log_set"`
	GGMLFree          func(ctx uintptr)                                                                   `c:"ggml-base:ggml_free"`
	TypeSize          func(typ int32) uint64                                                              `c:"ggml-base:ggml_type_size"`
	DevProps          func(dev uintptr, props *DeviceProps)                                               `c:"ggml-base:ggml_backend_dev_get_props"`
	DevBufferType     func(dev uintptr) uintptr                                                           `c:"ggml-base:ggml_backend_dev_buffer_type"`
	DevHostBuffer     func(dev uintptr) uintptr                                                           `c:"ggml-base:ggml_backend_dev_host_buffer_type"`
	DevFromHostPtr    func(dev, at, size, largest uintptr) uintptr                                        `c:"ggml-base:ggml_backend_dev_buffer_from_host_ptr"`
	DevSupportsOp     func(dev, op uintptr) bool                                                          `c:"ggml-base:ggml_backend_dev_supports_op"`
	DevSupportsBuffer func(dev, buft uintptr) bool                                                        `c:"ggml-base:ggml_backend_dev_supports_buft"`
	RegDevCount       func(reg uintptr) uintptr                                                           `c:"ggml-base:ggml_backend_reg_dev_count"`
	RegDevGet         func(reg, i uintptr) uintptr                                                        `c:"ggml-base:ggml_backend_reg_dev_get"`
	BuftMaxSize       func(buft uintptr) uintptr                                                          `c:"ggml-base:ggml_backend_buft_get_max_size"`
	BuftAlloc         func(buft, size uintptr) uintptr                                                    `c:"ggml-base:ggml_backend_buft_alloc_buffer"`
	BufferFree        func(buffer uintptr)                                                                `c:"ggml-base:ggml_backend_buffer_free"`
	BufferClear       func(buffer uintptr, value uint8)                                                   `c:"ggml-base:ggml_backend_buffer_clear"`
	BufferBase        func(buffer uintptr) uintptr                                                        `c:"ggml-base:ggml_backend_buffer_get_base"`
	BufferUsage       func(buffer uintptr, usage int32)                                                   `c:"ggml-base:ggml_backend_buffer_set_usage"`
	AllocTensors      func(ctx, buft uintptr) uintptr                                                     `c:"ggml-base:ggml_backend_alloc_ctx_tensors_from_buft"`
	TensorAlloc       func(buffer, tensor, at uintptr) int32                                              `c:"ggml-base:ggml_backend_tensor_alloc"`
	TensorSet         func(tensor, data, offset, size uintptr)                                            `c:"ggml-base:ggml_backend_tensor_set"`
	TensorGet         func(tensor, data, offset, size uintptr)                                            `c:"ggml-base:ggml_backend_tensor_get"`
	NewTensor         func(ctx uintptr, typ, dims int32, ne *int64) uintptr                               `c:"ggml-base:ggml_new_tensor"`
	MulMatID          func(ctx, experts, input, ids uintptr) uintptr                                      `c:"ggml-base:ggml_mul_mat_id"`
	BuildForward      func(graph, tensor uintptr)                                                         `c:"ggml-base:ggml_build_forward_expand"`
	QuantizeChunk     func(typ int32, from, to uintptr, start, rows, cols int64, weights uintptr) uintptr `c:"ggml-base:ggml_quantize_chunk"`

	// ggml
	Register   func(reg uintptr)         `c:"ggml:ggml_backend_register"`
	LoadModule func(path string) uintptr `c:"ggml:ggml_backend_load"`
	DevCount   func() uintptr            `c:"ggml:ggml_backend_dev_count"`
	DevGet     func(i uintptr) uintptr   `c:"ggml:ggml_backend_dev_get"`
	DevByType  func(typ int32) uintptr   `c:"ggml:ggml_backend_dev_by_type"`

	// llama
	LogSet            func(callback, data uintptr)                                                               `c:"llama:llama_log_set"`
	LlamaVersion      func() string                                                                              `c:"llama:llama_version"`
	ModelDefault      func() ModelParams                                                                         `c:"llama:llama_model_default_params"`
	ContextDefault    func() ContextParams                                                                       `c:"llama:llama_context_default_params"`
	ModelLoad         func(path string, p ModelParams) uintptr                                                   `c:"llama:llama_model_load_from_file"`
	ModelFree         func(model uintptr)                                                                        `c:"llama:llama_model_free"`
	ContextInit       func(model uintptr, p ContextParams) uintptr                                               `c:"llama:llama_init_from_model"`
	ContextFree       func(ctx uintptr)                                                                          `c:"llama:llama_free"`
	ContextLength     func(ctx uintptr) uint32                                                                   `c:"llama:llama_n_ctx"`
	ContextBatch      func(ctx uintptr) uint32                                                                   `c:"llama:llama_n_batch"`
	AttachThreadpool  func(ctx, pool, batchPool uintptr)                                                         `c:"llama:llama_attach_threadpool"`
	Decode            func(ctx uintptr, b Batch) int32                                                           `c:"llama:llama_decode"`
	Logits            func(ctx uintptr, i int32) uintptr                                                         `c:"llama:llama_get_logits_ith"`
	Memory            func(ctx uintptr) uintptr                                                                  `c:"llama:llama_get_memory"`
	MemoryClear       func(mem uintptr, data bool)                                                               `c:"llama:llama_memory_clear"`
	SetAbort          func(ctx, callback, data uintptr)                                                          `c:"llama:llama_set_abort_callback"`
	ModelVocab        func(model uintptr) uintptr                                                                `c:"llama:llama_model_get_vocab"`
	ModelContextTrain func(model uintptr) int32                                                                  `c:"llama:llama_model_n_ctx_train"`
	VocabSize         func(vocab uintptr) int32                                                                  `c:"llama:llama_vocab_n_tokens"`
	VocabIsEnd        func(vocab uintptr, token int32) bool                                                      `c:"llama:llama_vocab_is_eog"`
	Tokenize          func(vocab uintptr, text *byte, n int32, out *int32, max int32, special, parse bool) int32 `c:"llama:llama_tokenize"`
	TokenPiece        func(vocab uintptr, token int32, buf *byte, n, lstrip int32, special bool) int32           `c:"llama:llama_token_to_piece"`
	SamplerDefault    func() samplerChainParams                                                                  `c:"llama:llama_sampler_chain_default_params"`
	SamplerChain      func(samplerChainParams) uintptr                                                           `c:"llama:llama_sampler_chain_init"`
	SamplerAdd        func(chain, s uintptr)                                                                     `c:"llama:llama_sampler_chain_add"`
	SamplerFree       func(s uintptr)                                                                            `c:"llama:llama_sampler_free"`
	SamplerGreedy     func() uintptr                                                                             `c:"llama:llama_sampler_init_greedy"`
	SamplerDist       func(seed uint32) uintptr                                                                  `c:"llama:llama_sampler_init_dist"`
	SamplerTopK       func(k int32) uintptr                                                                      `c:"llama:llama_sampler_init_top_k"`
	SamplerTopP       func(p float32, keep uintptr) uintptr                                                      `c:"llama:llama_sampler_init_top_p"`
	SamplerMinP       func(p float32, keep uintptr) uintptr                                                      `c:"llama:llama_sampler_init_min_p"`
	SamplerTemp       func(t float32) uintptr                                                                    `c:"llama:llama_sampler_init_temp"`
	Sample            func(s, ctx uintptr, i int32) int32                                                        `c:"llama:llama_sampler_sample"`
	MaxOverrides      func() uintptr                                                                             `c:"llama:llama_max_tensor_buft_overrides"`
}

// Library is libllama with the libraries it stands on, opened once per process, and the CPU module that was chosen.
type Library struct {
	calls

	Dir string // where the libraries and modules are
	CPU Module // the CPU variant in use

	// ggml's numbers of these operations, found by name.
	OpMulMatID, OpMulMat, OpNone, OpAdd, OpMul, OpUnary int32

	// GraphComputePtr is ggml_backend_graph_compute, for purego.SyscallN: a call through a Go function value allocates,
	// and this one is made several times per layer of every token.
	GraphComputePtr uintptr

	accelerators map[string]uintptr // registries by the modules' paths

	cpuDevice  uintptr
	setThreads func(backend uintptr, n int32)
	poolNew    func(*threadpoolParams) uintptr
	poolFree   func(pool uintptr)
	poolSet    func(backend, pool uintptr)
}

var (
	loadOnce sync.Mutex
	loaded   *Library
)

// Load opens the libraries in dir and the best CPU module there. The libraries are the process's: a second call gives
// the same Library, and an error if it names another directory.
//
// The error wraps ErrMissing where a file is not there.
func Load(dir string) (*Library, error) {
	loadOnce.Lock()
	defer loadOnce.Unlock()
	if loaded != nil {
		if loaded.Dir != dir {
			return nil, fmt.Errorf("the llama.cpp libraries of %s are in use already, those of %s can't be opened beside them", loaded.Dir, dir)
		}
		return loaded, nil
	}
	l := &Library{Dir: dir, accelerators: map[string]uintptr{}}
	if err := l.open(); err != nil {
		return nil, err
	}
	if err := l.loadCPU(); err != nil {
		return nil, err
	}
	loaded = l
	return l, nil
}

// open opens base first, so that the others find it already open rather than through a search path.
func (l *Library) open() error {
	names := []string{"ggml-base", "ggml", "llama"}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(l.Dir, dynlib.Name(name))); err != nil {
			return fmt.Errorf("%w: %s is not in %s; unpack the whole archive and keep its files together, or run `go tool mage build`", ErrMissing, dynlib.Name(name), l.Dir)
		}
	}
	handles := map[string]uintptr{}
	for _, name := range names {
		h, err := dynlib.Open(filepath.Join(l.Dir, dynlib.Name(name)))
		if err != nil {
			return fmt.Errorf("the llama.cpp library %s does not load: %w", dynlib.Name(name), err)
		}
		handles[name] = h
	}
	v := reflect.ValueOf(&l.calls).Elem()
	for i := range v.NumField() {
		var lib, sym string
		tag := v.Type().Field(i).Tag.Get("c")
		for j := range tag {
			if tag[j] == ':' {
				lib, sym = tag[:j], tag[j+1:]
			}
		}
		p, err := dynlib.Symbol(handles[lib], sym)
		if err != nil {
			return fmt.Errorf("%s is not the llama.cpp release this program was built for: %w", dynlib.Name(lib), err)
		}
		purego.RegisterFunc(v.Field(i).Addr().Interface(), p)
	}
	var err error
	if l.GraphComputePtr, err = dynlib.Symbol(handles["ggml-base"], "ggml_backend_graph_compute"); err != nil {
		return err
	}
	for name, op := range map[string]*int32{"NONE": &l.OpNone, "MUL_MAT": &l.OpMulMat, "MUL_MAT_ID": &l.OpMulMatID, "ADD": &l.OpAdd, "MUL": &l.OpMul, "UNARY": &l.OpUnary} {
		if *op = l.op(name); *op < 0 {
			return fmt.Errorf("%s is not the llama.cpp release this program was built for: it has no operation %s", dynlib.Name("ggml-base"), name)
		}
	}
	l.routeLogs()
	return nil
}

// op is the number of the operation that ggml calls name, or -1.
func (l *Library) op(name string) int32 {
	for i := range int32(opCount) {
		if l.OpName(i) == name {
			return i
		}
	}
	return -1
}

// KVType is ggml's number of a type by its name ("f16", "q8_0"), or an error.
func (l *Library) KVType(name string) (int32, error) {
	for i := range int32(typeCount) {
		if name != "" && l.TypeName(i) == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%q is no ggml type", name)
}

// CPUDevice is the handle of the host's device.
func (l *Library) CPUDevice() uintptr { return l.cpuDevice }
