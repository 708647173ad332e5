package llama

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/backends"
)

func TestATwentyYearOldProcessorIsKnownAndOneFromNowhereIsNot(t *testing.T) {
	t.Parallel()
	tc, err := HostToolchain(t.Context())
	require.NoError(t, err)
	assert.Empty(t, tc.Lacks(t.Context(), backends.ForThisHost()[0]), "the module that runs anywhere")

	tc.CXX = "a compiler"
	assert.False(t, tc.compiles(t.Context(), "int main() { return 0; }", "-march=of-nowhere"))
	assert.Equal(t, "-march=of-nowhere", tc.unknown(t.Context(), []string{"-O1", "-march=of-nowhere"}))
}

func TestEachThingThatAnAcceleratorMissesIsNamed(t *testing.T) {
	t.Setenv("BMOE_TEST_KIT", "/no/such/folder")
	tc, err := HostToolchain(t.Context())
	require.NoError(t, err)
	a := backends.Accelerator{
		Systems: []string{"here"}, Programs: []string{"no-such-program"}, Headers: []string{"no/such.h", "stdio.h"},
		Library: "no-such-library", Variables: []string{"BMOE_TEST_KIT", "BMOE_TEST_UNSET"},
	}
	missing := tc.Misses(t.Context(), a, "here")
	for _, what := range []string{`BMOE_TEST_KIT is "/no/such/folder"`, "BMOE_TEST_UNSET names no folder", "no-such-program is not on the PATH", "finds no no/such.h", "finds no library no-such-library"} {
		assert.Contains(t, missing, what)
	}
	assert.NotContains(t, missing, "stdio.h")
	assert.Equal(t, "there is none for elsewhere", tc.Misses(t.Context(), a, "elsewhere"))
	assert.Empty(t, tc.Misses(t.Context(), backends.Accelerator{Systems: []string{"here"}, Headers: []string{"stdio.h"}, Library: "m"}, "here"))
}

func TestAShaderCompilerMustKnowItsExtensions(t *testing.T) {
	t.Parallel()
	assert.Empty(t, shader(t.Context(), ""))
	assert.Contains(t, shader(t.Context(), "GL_BMOE_no_such_extension"), "does not know GL_BMOE_no_such_extension", "or there is no glslc at all")
}
