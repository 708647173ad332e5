package backends

import "strings"

// machineFlags are the compiler flags by which llama.cpp asks for a feature of x86.
var machineFlags = map[string][]string{
	"SSE42": {"-msse4.2"}, "AVX": {"-mavx"}, "F16C": {"-mf16c"}, "FMA": {"-mfma"}, "AVX2": {"-mavx2"}, "BMI2": {"-mbmi2"},
	"AVX_VNNI":    {"-mavxvnni"},
	"AVX512":      {"-mavx512f", "-mavx512cd", "-mavx512vl", "-mavx512dq", "-mavx512bw"},
	"AVX512_VBMI": {"-mavx512vbmi"}, "AVX512_VNNI": {"-mavx512vnni"}, "AVX512_BF16": {"-mavx512bf16"},
	"AMX_TILE": {"-mamx-tile"}, "AMX_INT8": {"-mamx-int8"},
}

// extensions are the arm64 features in the order in which llama.cpp adds them to -march, each with the version it raises that to.
var extensions = []struct{ feature, version, name string }{
	{"DOTPROD", "armv8.2-a", "dotprod"},
	{"FP16_VECTOR_ARITHMETIC", "armv8.2-a", "fp16"},
	{"SVE", "armv8.2-a", "sve"},
	{"MATMUL_INT8", "armv8.6-a", "i8mm"},
	{"SVE2", "armv8.6-a", "sve2"},
	{"SME", "armv9.2-a", "sme"},
}

// Flags are those that a compiler must know to build this CPU module, as llama.cpp gives them. An old one does not know all.
func (m Module) Flags() []string {
	needs := map[string]bool{}
	var flags []string
	for _, feature := range m.Needs {
		needs[feature] = true
		flags = append(flags, machineFlags[feature]...)
	}
	version, added := "", ""
	for _, e := range extensions {
		if needs[e.feature] {
			version, added = e.version, added+"+"+e.name
		}
	}
	if version != "" {
		flags = append(flags, "-march="+version+added)
	}
	return flags
}

// IsCPU tells a variant of the CPU module.
func (m Module) IsCPU() bool { return m.Name == "cpu" || strings.HasPrefix(m.Name, "cpu-") }
