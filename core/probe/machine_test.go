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
	assert.Positive(t, m.Holdable)
	assert.NotEmpty(t, m.HoldableFrom)
}
