package llama

import (
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestThreadpool(t *testing.T) {
	l := library(t)
	p := l.ThreadpoolDefault(3)
	assert.EqualValues(t, 3, p.Threads)
	assert.LessOrEqual(t, p.Poll, uint32(100))
	assert.False(t, p.Strict || p.Paused)

	pool := l.NewThreadpool(2, 0)
	require.NotZero(t, pool.Handle())
	backend := l.NewCPUBackend(pool)
	require.NotZero(t, backend)
	l.SetThreads(backend, 2)

	owner, graph := l.NewGraph(300)
	require.NotZero(t, owner)
	assert.EqualValues(t, 300, graph.Size)
	assert.Empty(t, graph.NodeList())
	status, _, _ := purego.SyscallN(l.GraphComputePtr, backend, uintptr(unsafe.Pointer(graph)))
	assert.EqualValues(t, StatusSuccess, int32(status))

	l.FreeGraph(owner)
	l.BackendFree(backend)
	pool.Free()
	pool.Free() // and once more does nothing
	assert.Zero(t, pool.Handle())
}
