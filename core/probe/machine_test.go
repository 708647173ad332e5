package probe

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMachine(t *testing.T) {
	t.Parallel()
	m, err := Machine()
	require.NoError(t, err)
	require.NoError(t, m.Check())
	available, known := m.Memory.Available.Get()
	assert.True(t, known)
	assert.Positive(t, available)
	assert.NotEmpty(t, m.Memory.Available.From())
	assert.Positive(t, m.Cores.Physical.Or(0))
	assert.Positive(t, m.Memory.PageSize.Or(0))
	assert.False(t, m.Storage.Direct.Known(), "no storage is read")
}
