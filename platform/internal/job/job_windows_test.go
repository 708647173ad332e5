package job

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestContract(t *testing.T) {
	t.Parallel()
	l, err := Read()
	require.NoError(t, err)
	for _, n := range []int64{l.Process, l.Job, l.JobUsed, l.WorkingSet} {
		assert.GreaterOrEqual(t, n, int64(0))
	}
	u, err := Use()
	require.NoError(t, err)
	assert.Positive(t, u.Committed)
	assert.Positive(t, u.WorkingSet)
}
