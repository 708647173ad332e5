package mach

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The counts are of this machine's pages: together no more than it has, and some of each kind that a running system has.
func TestContract(t *testing.T) {
	t.Parallel()
	p, err := Count()
	require.NoError(t, err)
	memory, err := unix.SysctlUint64("hw.memsize")
	require.NoError(t, err)
	pages := memory / uint64(os.Getpagesize())
	assert.Positive(t, p.Wired)
	assert.Positive(t, p.Internal)
	assert.LessOrEqual(t, p.Wired+p.Active+p.Inactive, pages)
	assert.LessOrEqual(t, p.Compressor, pages)
	virtual, resident, err := Task()
	require.NoError(t, err)
	assert.Positive(t, resident)
	assert.GreaterOrEqual(t, virtual, resident)
}
