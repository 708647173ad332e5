package llama

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPlainly(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"/src/ggml/src/ggml.c:4005: GGML_ASSERT(a->ne[0] == b->ne[0]) failed": "ggml.c:4005: the check a->ne[0] == b->ne[0] failed",
		`C:\src\ggml.c:7: fatal error`:                                        "ggml.c:7: a case that is not handled",
		"no room: at all":                                                     "no room: at all",
		"":                                                                    "",
	} {
		assert.Equal(t, want, plainly(said))
	}
}
