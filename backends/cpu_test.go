package backends

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// offers is a processor with exactly these features.
func offers(features string) func(string) bool {
	list := strings.Fields(features)
	return func(f string) bool { return slices.Contains(list, f) }
}

const (
	haswell        = "SSE42 AVX F16C FMA AVX2 BMI2"
	zen4           = haswell + " AVX512 AVX512_VBMI AVX512_VNNI AVX512_BF16"
	sapphirerapids = zen4 + " AVX_VNNI AMX_TILE AMX_INT8"
)

func TestTheBestModuleIsTheMostDemandingThatRuns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, goos, goarch, features, want string }{
		{"nothing offered", "linux", "amd64", "", "cpu-x64"},
		{"sse4.2", "linux", "amd64", "SSE42", "cpu-sse42"},
		{"avx2", "linux", "amd64", haswell, "cpu-haswell"},
		{"avx2 without bmi2", "linux", "amd64", "SSE42 AVX F16C FMA AVX2", "cpu-piledriver"},
		{"avx-vnni without avx-512", "windows", "amd64", haswell + " AVX_VNNI", "cpu-alderlake"},
		{"avx-512 alone", "linux", "amd64", haswell + " AVX512", "cpu-skylakex"},
		{"avx-512 with bf16", "linux", "amd64", zen4, "cpu-zen4"},
		{"amx", "linux", "amd64", sapphirerapids, "cpu-sapphirerapids"},
		{"amx tiles without int8", "linux", "amd64", zen4 + " AMX_TILE", "cpu-zen4"},
		{"plain arm", "linux", "arm64", "", "cpu-armv8.0_1"},
		{"arm with everything but sme", "linux", "arm64", "DOTPROD FP16_VECTOR_ARITHMETIC SVE MATMUL_INT8 SVE2", "cpu-armv8.6_2"},
		{"arm with i8mm and no sve", "linux", "arm64", "DOTPROD FP16_VECTOR_ARITHMETIC MATMUL_INT8", "cpu-armv8.2_2"},
		{"a phone with i8mm and no sve", "android", "arm64", "DOTPROD FP16_VECTOR_ARITHMETIC MATMUL_INT8", "cpu-android_armv8.6_1"},
		{"apple", "darwin", "arm64", "DOTPROD FP16_VECTOR_ARITHMETIC", "cpu-apple_m1"},
		{"no variants", "windows", "arm64", "DOTPROD", "cpu"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, Best(CPU(c.goos, c.goarch), offers(c.features)).Name)
		})
	}
}

func TestFewHasTheBaselineTheBestAndAThird(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		goos, goarch, features string
		want                   []string
	}{
		{"linux", "amd64", sapphirerapids, []string{"cpu-x64", "cpu-sapphirerapids", "cpu-haswell"}},
		{"linux", "amd64", haswell, []string{"cpu-x64", "cpu-haswell", "cpu-sse42"}},
		{"linux", "amd64", "", []string{"cpu-x64", "cpu-haswell", "cpu-sse42"}},
		{"linux", "arm64", "DOTPROD FP16_VECTOR_ARITHMETIC SVE MATMUL_INT8 SVE2", []string{"cpu-armv8.0_1", "cpu-armv8.6_2", "cpu-armv8.2_1"}},
		{"darwin", "arm64", "DOTPROD", []string{"cpu-apple_m1", "cpu-apple_m2_m3", "cpu-apple_m4"}},
		{"windows", "arm64", "", []string{"cpu"}},
	} {
		t.Run(c.want[len(c.want)-1]+" on "+c.goos+" "+c.goarch, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, m := range Few(CPU(c.goos, c.goarch), offers(c.features)) {
				got = append(got, m.Name)
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// A feature that host.go does not know would silently keep a module from ever being chosen.
func TestEveryFeatureIsKnownToTheHost(t *testing.T) {
	t.Parallel()
	undetectable := map[string]bool{"SME": true}
	for _, system := range [][2]string{{"linux", "amd64"}, {"linux", "arm64"}, {"android", "arm64"}, {"darwin", "arm64"}} {
		for _, m := range CPU(system[0], system[1]) {
			for _, f := range m.Needs {
				_, known := host[f]
				assert.True(t, known != undetectable[f], "%s of %s", f, m.Name)
			}
		}
	}
}

func TestNamesAreUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, m := range append(CPU("linux", "amd64"), CPU("linux", "arm64")...) {
		require.False(t, seen[m.Name], m.Name)
		require.Equal(t, "ggml-"+m.Name, m.Target)
		seen[m.Name] = true
	}
	require.Len(t, seen, 22)
}

func TestFlagsAreThoseOfLlamaCpp(t *testing.T) {
	t.Parallel()
	flags := map[string]string{}
	for _, m := range append(CPU("linux", "amd64"), CPU("linux", "arm64")...) {
		flags[m.Name] = strings.Join(m.Flags(), " ")
	}
	for name, want := range map[string]string{
		"cpu-x64":       "",
		"cpu-haswell":   "-msse4.2 -mavx -mf16c -mfma -mavx2 -mbmi2",
		"cpu-alderlake": "-msse4.2 -mavx -mf16c -mfma -mavx2 -mbmi2 -mavxvnni",
		"cpu-armv8.0_1": "",
		"cpu-armv8.2_1": "-march=armv8.2-a+dotprod",
		"cpu-armv8.6_2": "-march=armv8.6-a+dotprod+fp16+sve+i8mm+sve2",
		"cpu-armv9.2_1": "-march=armv9.2-a+dotprod+fp16+sve+i8mm+sme",
	} {
		assert.Equal(t, want, flags[name], name)
	}
	// A feature without flags would let a compiler pass that cannot build it.
	for _, m := range append(CPU("linux", "amd64"), CPU("android", "arm64")...) {
		for _, feature := range m.Needs {
			assert.NotEmpty(t, Module{Needs: []string{feature}}.Flags(), feature)
		}
	}
}
