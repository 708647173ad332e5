package memory

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestContract(t *testing.T) {
	t.Parallel()
	f, err := Read()
	require.NoError(t, err)
	assert.Greater(t, f.Total, int64(64<<20))
	assert.Positive(t, f.Available)
	assert.LessOrEqual(t, f.Available, f.Total)
	assert.GreaterOrEqual(t, f.Limit, int64(0))
	if f.Limit > 0 {
		assert.LessOrEqual(t, f.Available, f.Limit)
	}
	assert.NotEmpty(t, f.Why)
}
