package cpu

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestContract(t *testing.T) {
	t.Parallel()
	n := Physical()
	assert.GreaterOrEqual(t, n, 1)
	assert.LessOrEqual(t, n, runtime.NumCPU())
	assert.Equal(t, n, Physical())
}
