package llama

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestUnversioned(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"libggml-base.so.0":      "libggml-base.so",
		"libggml-base.so":        "libggml-base.so",
		"libllama.so.0.5.0":      "libllama.so",
		"libggml-base.0.dylib":   "libggml-base.dylib",
		"libllama.0.5.0.dylib":   "libllama.dylib",
		"libllama.dylib":         "libllama.dylib",
		"libggml-base.dll":       "libggml-base.dll",
		"libggml-cpu-haswell.so": "libggml-cpu-haswell.so",
	} {
		assert.Equal(t, want, unversioned(name), name)
	}
}
