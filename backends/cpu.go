package backends

import "slices"

// variant is one line of the table in llama.cpp's ggml/src/CMakeLists.txt.
type variant struct {
	name  string
	needs []string
}

// The x86 table, in llama.cpp's order. Each level adds to the ones before it.
var (
	avx    = []string{"SSE42", "AVX"}
	f16c   = append(slices.Clip(avx), "F16C")
	fma    = append(slices.Clip(f16c), "FMA")
	avx2   = append(slices.Clip(fma), "AVX2", "BMI2")
	avx512 = append(slices.Clip(avx2), "AVX512")

	x86 = []variant{
		{"x64", nil},
		{"sse42", []string{"SSE42"}},
		{"sandybridge", avx},
		{"ivybridge", f16c},
		{"piledriver", fma},
		{"haswell", avx2},
		{"skylakex", avx512},
		{"cannonlake", append(slices.Clip(avx512), "AVX512_VBMI")},
		{"cascadelake", append(slices.Clip(avx512), "AVX512_VNNI")},
		{"icelake", append(slices.Clip(avx512), "AVX512_VBMI", "AVX512_VNNI")},
		{"cooperlake", append(slices.Clip(avx512), "AVX512_VNNI", "AVX512_BF16")},
		{"zen4", append(slices.Clip(avx512), "AVX512_VBMI", "AVX512_VNNI", "AVX512_BF16")},
		{"alderlake", append(slices.Clip(avx2), "AVX_VNNI")},
		{"sapphirerapids", append(slices.Clip(avx512), "AVX512_VBMI", "AVX512_VNNI", "AVX512_BF16", "AMX_TILE", "AMX_INT8")},
	}
)

// The arm64 tables: which variants llama.cpp offers depends on the system.
var (
	dotprod = []string{"DOTPROD"}
	fp16    = []string{"DOTPROD", "FP16_VECTOR_ARITHMETIC"}
	sve     = append(slices.Clip(fp16), "SVE")
	i8mmSVE = append(slices.Clip(sve), "MATMUL_INT8")
	i8mm    = append(slices.Clip(fp16), "MATMUL_INT8")

	arm64 = map[string][]variant{
		"linux": {
			{"armv8.0_1", nil},
			{"armv8.2_1", dotprod},
			{"armv8.2_2", fp16},
			{"armv8.2_3", sve},
			{"armv8.6_1", i8mmSVE},
			{"armv8.6_2", append(slices.Clip(i8mmSVE), "SVE2")},
			{"armv9.2_1", append(slices.Clip(i8mmSVE), "SME")},
			{"armv9.2_2", append(slices.Clip(i8mmSVE), "SVE2", "SME")},
		},
		"android": {
			{"android_armv8.0_1", nil},
			{"android_armv8.2_1", dotprod},
			{"android_armv8.2_2", fp16},
			{"android_armv8.6_1", i8mm},
			{"android_armv9.0_1", append(slices.Clip(i8mm), "SVE2")},
			{"android_armv9.2_1", append(slices.Clip(i8mmSVE), "SME")},
			{"android_armv9.2_2", append(slices.Clip(i8mmSVE), "SVE2", "SME")},
		},
		"darwin": {
			{"apple_m1", dotprod},
			{"apple_m2_m3", []string{"DOTPROD", "MATMUL_INT8"}},
			{"apple_m4", []string{"DOTPROD", "MATMUL_INT8", "SME"}},
		},
	}
)

// scores are the weights that a ggml CPU module adds up for its own features to rank itself; a feature that is missing here
// weighs nothing.
var scores = map[string]int{
	"FMA": 1, "F16C": 1 << 1, "SSE42": 1 << 2, "BMI2": 1 << 3, "AVX": 1 << 4, "AVX2": 1 << 5, "AVX_VNNI": 1 << 6,
	"AVX512": 1 << 7, "AVX512_VBMI": 1 << 8, "AVX512_BF16": 1 << 9, "AVX512_VNNI": 1 << 10, "AMX_INT8": 1 << 11,

	"DOTPROD": 1 << 1, "FP16_VECTOR_ARITHMETIC": 1 << 2, "SVE": 1 << 3, "MATMUL_INT8": 1 << 4, "SVE2": 1 << 5, "SME": 1 << 6,
}

// CPU lists the CPU modules that llama.cpp has for a system (in Go's names), the one that asks least first. Where it has no
// variants, as on Windows for arm64, there is one module for all.
func CPU(goos, goarch string) []Module {
	var table []variant
	switch goarch {
	case "amd64":
		table = x86
	case "arm64":
		table = arm64[goos]
	}
	if table == nil {
		return []Module{{Name: "cpu", Target: "ggml-cpu"}}
	}
	var modules []Module
	for _, v := range table {
		modules = append(modules, Module{
			Name:    "cpu-" + v.name,
			Target:  "ggml-cpu-" + v.name,
			Options: []string{"-DGGML_CPU_ALL_VARIANTS=ON"},
			Needs:   v.needs,
		})
	}
	return modules
}

// Best is the module that ggml would choose on a processor with these features, the first of modules if it can load none.
func Best(modules []Module, has func(feature string) bool) Module {
	best, top := modules[0], -1
	for _, m := range modules {
		if score := m.score(has); score > top {
			best, top = m, score
		}
	}
	return best
}

// score is what the module's own ggml_backend_score gives: 0 when it cannot run.
func (m Module) score(has func(string) bool) int {
	score := 1
	for _, feature := range m.Needs {
		if !has(feature) {
			return 0
		}
		score += scores[feature]
	}
	return score
}

// usual are the modules worth having beside the best one, the widest spread first.
var usual = []string{"cpu-haswell", "cpu-sse42", "cpu-armv8.2_1", "cpu-armv8.2_2", "cpu-apple_m2_m3", "cpu-apple_m4"}

// Few picks what a build for this machine takes out of modules: the one that runs anywhere, the one that is best here, and a
// third, so that there is something to choose between. Fewer where there are not three.
func Few(modules []Module, has func(feature string) bool) []Module {
	few := []Module{modules[0]}
	add := func(m Module) {
		taken := slices.ContainsFunc(few, func(t Module) bool { return t.Name == m.Name })
		if !taken && len(few) < 3 {
			few = append(few, m)
		}
	}
	add(Best(modules, has))
	for _, name := range usual {
		if i := slices.IndexFunc(modules, func(m Module) bool { return m.Name == name }); i >= 0 {
			add(modules[i])
		}
	}
	return few
}
