package llama

// Threadpool is a persistent set of ggml threads, shared by the context and the expert device: without one, a build
// without OpenMP starts threads on every graph.
type Threadpool struct {
	lib    *Library
	handle uintptr
}

// NewThreadpool starts n threads. poll is how long an idle one spins before it sleeps, 0 to 100.
func (l *Library) NewThreadpool(n int, poll uint32) *Threadpool {
	p := l.ThreadpoolDefault(int32(n))
	p.Poll = poll
	return &Threadpool{lib: l, handle: l.poolNew(&p)}
}

// Handle is the ggml_threadpool.
func (t *Threadpool) Handle() uintptr { return t.handle }

// Free ends the threads. Nothing may compute on them any more.
func (t *Threadpool) Free() {
	if t.handle != 0 {
		t.lib.poolFree(t.handle)
		t.handle = 0
	}
}

// NewCPUBackend is an instance of the host's backend on that threadpool.
func (l *Library) NewCPUBackend(pool *Threadpool) uintptr {
	b := l.BackendInit(l.cpuDevice, 0)
	if b != 0 {
		l.poolSet(b, pool.handle)
	}
	return b
}

// SetThreads sets how many threads of its pool a CPU backend uses.
func (l *Library) SetThreads(backend uintptr, n int) { l.setThreads(backend, int32(n)) }

// NewGraph is an empty graph with room for that many nodes, filled by writing its node list. The first result frees it
// (FreeGraph). Source: ggml_new_graph_custom in a context that allocates no tensor data.
func (l *Library) NewGraph(nodes int) (uintptr, *Graph) {
	ctx := l.Init(initParams{Size: uintptr(nodes)*512 + 1<<16, NoAlloc: true})
	return ctx, (*Graph)(Pointer(l.calls.NewGraph(ctx, uintptr(nodes), false)))
}

// FreeGraph gives back what NewGraph took.
func (l *Library) FreeGraph(ctx uintptr) { l.GGMLFree(ctx) }
