package engine

import (
	"time"

	"github.com/bmoe/bmoe/core/experts"
)

// CacheAuto asks the session to size the expert cache from what this process may hold once the context exists.
const CacheAuto = int64(-1)

// Config is a run whose every choice is made: what a plan or the command line hands to Open.
type Config struct {
	Model string // path of the model file, or of its first shard

	Context      int    // tokens; the KV cache is this long
	Ubatch       int    // tokens in the widest graph; 0: the context
	Threads      int    // threads of a decode; 0: the physical cores this process may use
	ThreadsBatch int    // threads of a prefill; 0: Threads
	TypeK, TypeV string // ggml types of the KV cache; "": f16
	FlashAttn    string // auto, on or off; "": auto

	Stream      bool     // experts come from storage through the expert device; false: plain llama.cpp
	CacheBytes  int64    // what the expert slots may take; CacheAuto, or 0: slices pass through a few slots
	CachePin    bool     // lock the expert cache in memory, as far as the system grants it
	CachePinFit bool     // where it refuses part way, make the cache as large as what it granted, no less than a token cycle
	Lanes       int      // concurrent reads; 0: 4
	Overlap     bool     // compute resident experts while the missing ones are read
	Direct      bool     // read past the page cache where the file allows it
	Dense       string   // mmap, warm, anon or pinned; "": anon when streaming
	ReleaseMmap bool     // give the file's mapping back after loading, where nothing is used out of it
	ExpertsUsed int      // routing width; 0: the model's own. Changes the output
	MemoryLimit int64    // bytes the run may hold; 0: what the machine lets it
	Repack      bool     // let llama.cpp repack weights for the host (only without Stream)
	Devices     []string // names of the devices layers may go to; none: the host alone

	// Progress, when set, is told how far a long step is. It may be called from any goroutine, never after Open returned.
	Progress func(step string, fraction float64)
	// Fatal, when set, is told what llama.cpp says when it can't go on, before it ends the process; it may end it first. A
	// file whose metadata lies can make that happen where no check of this program's finds it. Of several sessions in one
	// process the last one's counts.
	Fatal func(said string)
	// Through, when set, gives what experts are read through in place of the file: for tests of drives that fail.
	Through func(experts.File) experts.File
}

// Sampling says how the next token is chosen. The zero value is greedy.
type Sampling struct {
	Temperature float64 // 0: greedy
	TopK        int     // 0: off
	TopP        float64 // 0 or 1: off
	MinP        float64 // 0: off
	Seed        uint32
}

// Request is one prompt and how far to go.
type Request struct {
	Prompt    string
	Max       int // tokens to generate at most
	Sampling  Sampling
	IgnoreEOS bool

	// Progress, when set, is told what share of the prompt is computed, from any goroutine, until the first token is made.
	Progress func(fraction float64)
}

// Token is one generated token and what it cost.
type Token struct {
	Index   int           `json:"index"` // 0 for the first generated
	ID      int32         `json:"id"`
	Text    string        `json:"text"`       // bytes that became complete UTF-8 with this token; may be empty
	Elapsed time.Duration `json:"elapsed_ns"` // since the previous token (the first: since the prefill began)
	Cost
}

// Cost counts what the expert device did: for one token, one phase or the whole run.
type Cost struct {
	Hits      int64         `json:"hits"`       // slices found in a slot
	Misses    int64         `json:"misses"`     // slices read
	ReadBytes int64         `json:"read_bytes"` // expert bytes read from storage
	Wait      time.Duration `json:"wait_ns"`    // time the computation stood still for reads
}

// Phase is what a prefill or a decode took.
type Phase struct {
	Tokens  int           `json:"tokens"`
	Elapsed time.Duration `json:"elapsed_ns"`
	Cost
}

// TokensPerSecond is 0 for a phase that did nothing.
func (p Phase) TokensPerSecond() float64 {
	if p.Tokens == 0 || p.Elapsed <= 0 {
		return 0
	}
	return float64(p.Tokens) / p.Elapsed.Seconds()
}

// Result is what one Generate did. Stop says why it ended.
type Result struct {
	Prefill, Decode Phase
	Stop            Stop
}

// Stop is why a generation ended.
type Stop string

const (
	StopLimit       Stop = "limit"       // Request.Max was reached
	StopEnd         Stop = "end"         // the model ended its text
	StopContext     Stop = "context"     // the context is full
	StopInterrupted Stop = "interrupted" // the context.Context was cancelled
)

// Report is the session so far, for the end of a run.
type Report struct {
	Mode         string        `json:"mode"`      // one line: plain or streaming, with cache, lanes, overlap, direct, dense
	Libraries    string        `json:"libraries"` // llama.cpp release and CPU variant
	Load         time.Duration `json:"load_ns"`
	Prefill      Phase         `json:"prefill"`
	Decode       Phase         `json:"decode"`
	CacheBytes   int64         `json:"cache_bytes"`
	DenseBytes   int64         `json:"dense_bytes"`
	ContextBytes int64         `json:"context_bytes"` // of the KV cache, computed from the model's tensors; 0 where they don't tell
	ComputeBytes int64         `json:"compute_bytes"` // of the buffers that graphs compute in, which fill as wide graphs run
	PeakResident int64         `json:"peak_resident_bytes"`
	PeakHeld     int64         `json:"peak_held_bytes"` // anonymous plus locked, sampled

	CachePinned     int64 `json:"cache_pinned_bytes"`      // of the cache, locked in place
	CachePinRefused int64 `json:"cache_pin_refused_bytes"` // of it, what the system did not lock when it was asked to
	DensePinned     int64 `json:"dense_pinned_bytes"`      // of the dense set, exempt from reclaim
	DensePinRefused int64 `json:"dense_pin_refused_bytes"` // of it, what the system did not grant

	Notes []string `json:"notes"` // what a person should know: direct I/O refused, a lock refused part way, ...
}
