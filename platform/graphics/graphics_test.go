package graphics

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Whatever the system, a device has a name, and where there is no answer there is a reason in its place.
func TestContract(t *testing.T) {
	t.Parallel()
	device, unified, err := Unified()
	if err != nil {
		assert.Empty(t, device)
		assert.False(t, unified)
		assert.ErrorContains(t, err, "not known: ")
		return
	}
	assert.NotEmpty(t, device)
	again, same, err := Unified()
	assert.NoError(t, err)
	assert.Equal(t, device, again)
	assert.Equal(t, unified, same)
}
