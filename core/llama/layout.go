package llama

import "unsafe"

// The structs below mirror the pinned headers (llama.h, ggml.h, ggml-cpu.h, ggml-backend-impl.h, ggml-impl.h).
// TestLayout compiles a C program against those headers and compares every size and offset.

// ModelParams mirrors llama_model_params.
type ModelParams struct {
	Devices       uintptr // NULL-terminated list; a list of only NULL keeps every layer on the host
	Overrides     uintptr // array of BufferOverride, ended by a zero one
	GPULayers     int32
	SplitMode     int32
	LoadMode      int32
	LazyMode      int32
	MainGPU       int32
	_             int32
	TensorSplit   uintptr
	Progress      uintptr
	ProgressData  uintptr
	KVOverrides   uintptr // array of KVOverride, ended by one whose key is empty
	VocabOnly     bool
	CheckTensors  bool
	UseExtraBufts bool
	NoHost        bool
	NoAlloc       bool
	LoadMTP       bool
	_             [2]byte
}

// Values of ModelParams.LoadMode (enum llama_load_mode).
const (
	LoadRead = 0
	LoadMmap = 1
)

// BufferOverride mirrors llama_model_tensor_buft_override: tensors whose name matches the pattern live in that buffer type.
type BufferOverride struct {
	Pattern uintptr // C string, an ECMAScript regular expression searched in the name; first match wins
	Type    uintptr
}

// KVOverride mirrors llama_model_kv_override.
type KVOverride struct {
	Tag   int32
	Key   [128]byte
	_     [4]byte
	Value [128]byte // union; an int64 sits at its start
}

// KVInt is the tag of an integer KVOverride (LLAMA_KV_OVERRIDE_TYPE_INT).
const KVInt = 0

// ContextParams mirrors llama_context_params.
type ContextParams struct {
	Ctx, Batch, Ubatch, SeqMax, RsSeq, OutputsMax, OutputsMaxPerSeq uint32
	Threads, ThreadsBatch                                           int32
	Type, RopeScaling, Pooling, Attention, FlashAttn                int32
	RopeBase, RopeScale, YarnExt, YarnAttn, YarnFast, YarnSlow      float32
	YarnOrigCtx                                                     uint32
	DefragThold                                                     float32
	EvalCallback, EvalData                                          uintptr
	TypeK, TypeV                                                    int32
	AbortCallback, AbortData                                        uintptr
	Embeddings, OffloadKQV, NoPerf, OpOffload, SWAFull, KVUnified   bool
	_                                                               [2]byte
	Samplers                                                        uintptr
	NSamplers                                                       uintptr
	CtxOther                                                        uintptr
}

// Batch mirrors llama_batch.
type Batch struct {
	Tokens                          int32
	_                               int32
	Token, Embd, Pos, NSeqID, SeqID uintptr
	Logits                          uintptr
}

// Tensor mirrors ggml_tensor. Ne are element counts, fastest dimension first; Nb the strides in bytes.
type Tensor struct {
	Type     int32
	_        int32
	Buffer   uintptr
	Ne       [4]int64
	Nb       [4]uint64
	Op       int32
	OpParams [16]int32
	Flags    int32
	Src      [10]*Tensor
	ViewSrc  *Tensor
	ViewOffs uintptr
	Data     unsafe.Pointer
	Name     [64]byte
	Extra    uintptr
	_        [8]byte
}

// Graph mirrors the head of ggml_cgraph; the rest belongs to ggml.
type Graph struct {
	Size, Nodes, Leafs int32
	_                  int32
	Node               unsafe.Pointer // **Tensor, Nodes of them in order
}

// BufferTypeInterface mirrors ggml_backend_buffer_type_i.
type BufferTypeInterface struct{ GetName, AllocBuffer, GetAlignment, GetMaxSize, GetAllocSize, IsHost uintptr }

// BufferType mirrors ggml_backend_buffer_type.
type BufferType struct {
	Interface BufferTypeInterface
	Device    uintptr
	Context   uintptr
}

// BufferInterface mirrors ggml_backend_buffer_i.
type BufferInterface struct{ Free, GetBase, InitTensor, MemsetTensor, SetTensor, GetTensor, SetTensor2D, GetTensor2D, CopyTensor, Clear, Reset uintptr }

// Buffer mirrors ggml_backend_buffer.
type Buffer struct {
	Interface BufferInterface
	Type      *BufferType
	Context   uintptr
	Size      uintptr
	Usage     int32
	_         int32
}

// BackendInterface mirrors ggml_backend_i.
type BackendInterface struct {
	GetName, Free, SetTensorAsync, GetTensorAsync, SetTensor2DAsync, GetTensor2DAsync, CopyTensorAsync, Synchronize uintptr
	PlanCreate, PlanFree, PlanUpdate, PlanCompute, GraphCompute, EventRecord, EventWait, GraphOptimize              uintptr
}

// Backend mirrors ggml_backend.
type Backend struct {
	GUID      uintptr
	Interface BackendInterface
	Device    uintptr
	Context   uintptr
}

// DeviceInterface mirrors ggml_backend_device_i.
type DeviceInterface struct {
	GetName, GetDescription, GetMemory, GetType, GetProps, InitBackend, GetBufferType, GetHostBufferType, BufferFromHostPtr uintptr
	SupportsOp, SupportsBuft, OffloadOp, EventNew, EventFree, EventSynchronize                                              uintptr
}

// Device mirrors ggml_backend_device.
type Device struct {
	Interface DeviceInterface
	Registry  uintptr
	Context   uintptr
}

// DeviceProps mirrors ggml_backend_dev_props.
type DeviceProps struct {
	Name, Description uintptr
	MemFree, MemTotal uint64
	Type              int32
	_                 int32
	ID                uintptr
	Async             bool
	HostBuffer        bool
	BufferFromHostPtr bool
	Events            bool
	MmapSupport       bool
	_                 [3]byte
}

// RegistryInterface mirrors ggml_backend_reg_i.
type RegistryInterface struct{ GetName, DeviceCount, GetDevice, GetProcAddress uintptr }

// Registry mirrors ggml_backend_reg.
type Registry struct {
	APIVersion int32
	_          int32
	Interface  RegistryInterface
	Context    uintptr
}

// How many operations and types the pin has (GGML_OP_COUNT, GGML_TYPE_COUNT): ggml reads past its tables beyond them.
const (
	opCount   = 101
	typeCount = 43
)

// APIVersion is GGML_BACKEND_API_VERSION of the pin; a module with another one is not loaded.
const APIVersion = 2

// threadpoolParams mirrors ggml_threadpool_params.
type threadpoolParams struct {
	CPUMask  [512]bool
	Threads  int32
	Priority int32
	Poll     uint32
	Strict   bool
	Paused   bool
	_        [2]byte
}

// initParams mirrors ggml_init_params.
type initParams struct {
	Size    uintptr
	Buffer  uintptr
	NoAlloc bool
	_       [7]byte
}

// samplerChainParams mirrors llama_sampler_chain_params.
type samplerChainParams struct{ NoPerf bool }

// Values of enum ggml_backend_dev_type.
const (
	DeviceCPU   = 0
	DeviceGPU   = 1
	DeviceIGPU  = 2
	DeviceAccel = 3
)

// usageWeights is GGML_BACKEND_BUFFER_USAGE_WEIGHTS: the buffer holds what every graph reads and none writes.
const usageWeights = 1

// Values of enum ggml_status.
const (
	StatusFailed  = -1
	StatusSuccess = 0
	StatusAborted = 1
)

// NameString is the tensor's name.
func (t *Tensor) NameString() string {
	for i, c := range t.Name {
		if c == 0 {
			return string(t.Name[:i])
		}
	}
	return string(t.Name[:])
}

// TypeOf is the buffer type of the tensor's buffer, or nil while it has none.
func (t *Tensor) TypeOf() *BufferType {
	if t.Buffer == 0 {
		return nil
	}
	return bufferAt(t.Buffer).Type
}

// NodeList is the graph's nodes in order. The slice views memory of the graph and is valid while the graph is.
func (g *Graph) NodeList() []*Tensor { return unsafe.Slice((**Tensor)(g.Node), int(g.Nodes)) }

// bufferAt views a ggml_backend_buffer that ggml allocated: not Go memory, so the garbage collector never moves it.
func bufferAt(p uintptr) *Buffer { return (*Buffer)(Pointer(p)) }

// Pointer turns an address that C gave us into a pointer. It is sound for memory outside the Go heap alone, which is all
// this is used for: the address is read through a variable so that vet does not take it for Go pointer arithmetic.
func Pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// GoString copies a C string.
func GoString(p uintptr) string {
	if p == 0 {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(Pointer(p)), n))
}

// Types of ggml that the engine makes itself (enum ggml_type).
const (
	TypeF32  = 0
	TypeQ8_0 = 8
	typeI32  = 26
)

// Q8_0Bytes is the size of n elements in Q8_0: blocks of 32 in 34 bytes. n is a multiple of 32.
func Q8_0Bytes(n int64) int64 { return n / 32 * 34 }
