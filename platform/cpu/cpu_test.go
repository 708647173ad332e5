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

// Where the kinds of cores are known they are sorted, and there are no more cores than CPUs; else there is a reason.
func TestClassesContract(t *testing.T) {
	t.Parallel()
	classes, from, err := Classes()
	if err != nil {
		assert.Empty(t, classes)
		assert.ErrorContains(t, err, "not known: ")
		return
	}
	assert.NotEmpty(t, from)
	n := 0
	for i, c := range classes {
		assert.Positive(t, c.Count)
		assert.GreaterOrEqual(t, c.Frequency, int64(0))
		if i > 0 {
			assert.LessOrEqual(t, c.Frequency, classes[i-1].Frequency)
		}
		n += c.Count
	}
	assert.Positive(t, n)
	assert.LessOrEqual(t, n, runtime.NumCPU())
	assert.GreaterOrEqual(t, n, Physical(), "a share of the CPU time only takes cores away")
}
