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

// On every system an answer says where it came from, and where there is none there is a reason.
func TestPressureContract(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func() (bool, string, error){"ends": Ends, "compresses": Compresses, "swaps": Swaps} {
		yes, from, err := ask()
		if err != nil {
			assert.False(t, yes, name)
			assert.ErrorContains(t, err, "not known: ", name)
			continue
		}
		assert.NotEmpty(t, from, name)
	}
	ratio, from, err := CompressorRatio()
	if err == nil {
		assert.GreaterOrEqual(t, ratio, 1.0)
		assert.NotEmpty(t, from)
	} else {
		assert.ErrorContains(t, err, "not known: ")
	}
	idle, from, err := IdleAnonymous()
	if err == nil {
		f, err := Read()
		require.NoError(t, err)
		assert.GreaterOrEqual(t, idle, int64(0))
		assert.LessOrEqual(t, idle, f.Total)
		assert.NotEmpty(t, from)
	} else {
		assert.ErrorContains(t, err, "not known: ")
	}
}
