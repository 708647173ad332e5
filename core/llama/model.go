package llama

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/bmoe/bmoe/platform/dynlib"
)

// Model is a loaded model.
type Model struct {
	lib    *Library
	handle uintptr
	vocab  uintptr
}

// ModelOptions is what a load is asked beyond llama.cpp's defaults.
type ModelOptions struct {
	Devices   []uintptr                   // devices that layers may go to; none keeps all on the host
	GPULayers int                         // layers to place on them
	Overrides []Override                  // first match wins
	Repack    bool                        // let the host's weights be repacked
	IntKV     map[string]int64            // metadata to replace
	Progress  func(fraction float64) bool // false ends the load
}

// Override sends the tensors that match an ECMAScript pattern to a buffer type.
type Override struct {
	Pattern string
	Type    uintptr
}

// progress is the callback of the load under way; loads do not run side by side.
var progress struct {
	hook uintptr
	f    func(float64) bool
}

// LoadModel loads the file, or the shards that the first one names. The error gives llama.cpp's own reason.
//
// Source: llama_model_load_from_file of llama.h.
func (l *Library) LoadModel(ctx context.Context, path string, o ModelOptions) (*Model, error) {
	p := l.ModelDefault()
	p.LoadMode = LoadMmap
	p.UseExtraBufts = o.Repack
	p.GPULayers = int32(o.GPULayers)
	p.LoadMTP = false
	devices := append(append([]uintptr{}, o.Devices...), 0)
	p.Devices = Addr(devices)

	overrides := make([]BufferOverride, 0, len(o.Overrides)+1)
	keep := make([][]byte, 0, len(o.Overrides))
	for _, v := range o.Overrides {
		s := CString(v.Pattern)
		keep = append(keep, s)
		overrides = append(overrides, BufferOverride{Pattern: Addr(s), Type: v.Type})
	}
	if len(overrides) > 0 {
		if max := int(l.MaxOverrides()); len(overrides) >= max {
			return nil, fmt.Errorf("the load needs %d tensor overrides and llama.cpp takes %d", len(overrides), max-1)
		}
		overrides = append(overrides, BufferOverride{})
		p.Overrides = Addr(overrides)
	}
	kv := make([]KVOverride, 0, len(o.IntKV)+1)
	for key, value := range o.IntKV {
		v := KVOverride{Tag: KVInt}
		if copy(v.Key[:len(v.Key)-1], key) < len(key) {
			return nil, fmt.Errorf("the metadata key %q is longer than llama.cpp takes", key)
		}
		*(*int64)(unsafe.Pointer(&v.Value)) = value // the union's int64 member, which C aligns like this struct: 4+128+4 bytes in
		kv = append(kv, v)
	}
	if len(kv) > 0 {
		kv = append(kv, KVOverride{})
		p.KVOverrides = Addr(kv)
	}
	if progress.hook == 0 {
		progress.hook = purego.NewCallback(func(f float32, _ uintptr) uintptr {
			if progress.f(float64(f)) {
				return 1
			}
			return 0
		})
	}
	progress.f = func(f float64) bool {
		if ctx.Err() != nil {
			return false
		}
		return o.Progress == nil || o.Progress(f)
	}
	p.Progress = progress.hook

	l.captureErrors()
	h := l.ModelLoad(path, p)
	said := l.captured()
	runtime.KeepAlive(devices)
	runtime.KeepAlive(overrides)
	runtime.KeepAlive(keep)
	runtime.KeepAlive(kv)
	if h == 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("llama.cpp can't load it: %s", reason(said, "it gave no reason"))
	}
	return &Model{lib: l, handle: h, vocab: l.ModelVocab(h)}, nil
}

// Free releases the model. Its contexts must be gone.
func (m *Model) Free() {
	if m.handle != 0 {
		m.lib.ModelFree(m.handle)
		m.handle = 0
	}
}

// VocabSize is the number of tokens, and the length of a row of logits.
func (m *Model) VocabSize() int { return int(m.lib.VocabSize(m.vocab)) }

// IsEnd tells a token that ends a generation.
func (m *Model) IsEnd(token int32) bool { return m.lib.VocabIsEnd(m.vocab, token) }

// Tokenize turns text into tokens, with the model's own start token where it has one; special tokens in the text count.
func (m *Model) Tokenize(text string) ([]int32, error) {
	if len(text) > math.MaxInt32 {
		return nil, errors.New("the prompt is longer than 2 GiB")
	}
	src := CString(text)
	out := make([]int32, len(text)+8)
	n := m.lib.Tokenize(m.vocab, &src[0], int32(len(text)), &out[0], int32(len(out)), true, true)
	if n < 0 && n != math.MinInt32 {
		out = make([]int32, -n)
		n = m.lib.Tokenize(m.vocab, &src[0], int32(len(text)), &out[0], int32(len(out)), true, true)
	}
	if n < 0 {
		return nil, errors.New("the model's tokenizer can't take the prompt")
	}
	return out[:n], nil
}

// Piece is the text of a token: bytes that need not be whole UTF-8 characters. A special token has none.
func (m *Model) Piece(token int32) []byte {
	if token < 0 || int(token) >= m.VocabSize() {
		return nil // llama.cpp ends the process
	}
	buf := make([]byte, 64)
	n := m.lib.TokenPiece(m.vocab, token, &buf[0], int32(len(buf)), 0, false)
	if n < 0 {
		buf = make([]byte, -n)
		n = m.lib.TokenPiece(m.vocab, token, &buf[0], int32(len(buf)), 0, false)
	}
	return buf[:max(n, 0)]
}

// Context is a session's state over a model: KV cache and compute buffers.
type Context struct {
	lib    *Library
	model  *Model
	handle uintptr
	abort  []byte
	tokens []int32

	ComputeBytes int64 // of the compute buffers it reserved; memory only once a graph touches it
}

// ContextOptions is what a context is asked beyond llama.cpp's defaults.
type ContextOptions struct {
	Length, Ubatch        int // tokens
	Threads, ThreadsBatch int
	TypeK, TypeV          int32
	FlashAttn             int32 // -1 auto, 0 off, 1 on
	OutputsMax            int   // rows of logits a graph may give; 0: as many as tokens
	OpOffload             bool
}

// ErrAborted says that a decode ended because Abort was called.
var ErrAborted = errors.New("interrupted")

// NewContext makes a context over the model, with the threadpool attached.
func (m *Model) NewContext(o ContextOptions, pool *Threadpool) (*Context, error) {
	l := m.lib
	p := l.ContextDefault()
	p.Ctx = uint32(o.Length)
	p.Batch = uint32(o.Ubatch)
	p.Ubatch = uint32(o.Ubatch)
	p.OutputsMax = uint32(o.OutputsMax)
	p.Threads, p.ThreadsBatch = int32(o.Threads), int32(o.ThreadsBatch)
	p.TypeK, p.TypeV = o.TypeK, o.TypeV
	p.FlashAttn = o.FlashAttn
	p.NoPerf = true
	p.OpOffload = o.OpOffload
	l.captureErrors()
	count := l.countBuffers()
	h := l.ContextInit(m.handle, p)
	said, compute := l.captured(), count()
	if h == 0 {
		return nil, fmt.Errorf("llama.cpp can't make a context of %d tokens: %s", o.Length, reason(said, "it gave no reason"))
	}
	c := &Context{lib: l, model: m, handle: h, abort: make([]byte, 2), ComputeBytes: compute}
	if pool != nil {
		l.AttachThreadpool(h, pool.handle, pool.handle)
	}
	// The callback is the C library's strlen over a flag of one character: it answers "true" once the flag is set, and
	// costs no call into Go for each node of each graph.
	if p, err := dynlib.CSymbol("strlen"); err == nil {
		l.SetAbort(h, p, Addr(c.abort))
	}
	return c, nil
}

// Free releases the context.
func (c *Context) Free() {
	if c.handle != 0 {
		c.lib.ContextFree(c.handle)
		c.handle = 0
	}
}

// Abort makes the decode under way, and every later one, end early.
func (c *Context) Abort() { c.abort[0] = 1 }

// Length is the context's real length in tokens, which llama.cpp may have rounded up.
func (c *Context) Length() int { return int(c.lib.ContextLength(c.handle)) }

// Decode runs the tokens as one batch, positions following those before, and leaves the logits of the last one.
func (c *Context) Decode(tokens []int32) error {
	if len(tokens) == 0 {
		return nil
	}
	if most := int(c.lib.ContextBatch(c.handle)); len(tokens) > most { // llama.cpp ends the process
		return fmt.Errorf("%d tokens in one batch are more than the context's %d", len(tokens), most)
	}
	if cap(c.tokens) < len(tokens) {
		c.tokens = make([]int32, len(tokens))
	}
	c.tokens = c.tokens[:len(tokens)]
	copy(c.tokens, tokens)
	c.lib.captureErrors()
	r := c.lib.Decode(c.handle, Batch{Tokens: int32(len(tokens)), Token: Addr(c.tokens)})
	said := c.lib.captured()
	switch {
	case r == 0:
		return nil
	case r == 1:
		return errors.New("the context has no room left for the tokens")
	case c.abort[0] != 0:
		return ErrAborted
	case r == 2:
		return ErrAborted
	}
	return fmt.Errorf("llama.cpp failed to compute: %s", reason(said, "it gave no reason"))
}

// Logits views the last token's logits, one per token of the vocabulary, valid until the next Decode.
func (c *Context) Logits() []float32 {
	p := c.lib.Logits(c.handle, -1)
	if p == 0 {
		return nil
	}
	return unsafe.Slice((*float32)(Pointer(p)), c.model.VocabSize())
}

// Clear forgets every token.
func (c *Context) Clear() { c.lib.MemoryClear(c.lib.Memory(c.handle), true) }

// Sampler picks tokens from a context's logits.
type Sampler struct {
	lib    *Library
	handle uintptr
}

// SamplerOptions is the chain in llama.cpp's order: top-k, top-p, min-p, temperature, then a draw. A temperature of 0 is greedy.
type SamplerOptions struct {
	TopK        int
	TopP, MinP  float64
	Temperature float64
	Seed        uint32
}

// NewSampler builds the chain.
func (l *Library) NewSampler(o SamplerOptions) *Sampler {
	chain := l.SamplerChain(l.SamplerDefault())
	if o.Temperature <= 0 {
		l.SamplerAdd(chain, l.SamplerGreedy())
		return &Sampler{lib: l, handle: chain}
	}
	if o.TopK > 0 {
		l.SamplerAdd(chain, l.SamplerTopK(int32(o.TopK)))
	}
	if o.TopP > 0 && o.TopP < 1 {
		l.SamplerAdd(chain, l.SamplerTopP(float32(o.TopP), 1))
	}
	if o.MinP > 0 {
		l.SamplerAdd(chain, l.SamplerMinP(float32(o.MinP), 1))
	}
	l.SamplerAdd(chain, l.SamplerTemp(float32(o.Temperature)))
	l.SamplerAdd(chain, l.SamplerDist(o.Seed))
	return &Sampler{lib: l, handle: chain}
}

// Next picks from the last token's logits.
func (s *Sampler) Next(c *Context) int32 { return s.lib.Sample(s.handle, c.handle, -1) }

// Free releases the chain.
func (s *Sampler) Free() {
	if s.handle != 0 {
		s.lib.SamplerFree(s.handle)
		s.handle = 0
	}
}

// Version is llama.cpp's release and the CPU variant in use.
func (l *Library) Version() string {
	v := strings.TrimSpace(l.LlamaVersion())
	if v == "" {
		v = "unknown release"
	}
	return fmt.Sprintf("llama.cpp %s, %s", v, l.CPU.Name)
}
