package backends

import (
	"runtime"

	"golang.org/x/sys/cpu"
)

// ForThisHost lists the CPU modules that llama.cpp has for the system this runs on.
func ForThisHost() []Module {
	return CPU(runtime.GOOS, runtime.GOARCH)
}

// Host says whether the processor this runs on, and the system on it, offer a feature (in llama.cpp's names). A feature that
// cannot be asked for here, such as SME, counts as absent: the module that needs it is then not built by default, which costs
// speed and never correctness.
func Host(feature string) bool {
	return host[feature]
}

var host = map[string]bool{
	"SSE42":       cpu.X86.HasSSE42,
	"AVX":         cpu.X86.HasAVX,
	"F16C":        cpu.X86.HasF16C && cpu.X86.HasAVX,
	"FMA":         cpu.X86.HasFMA,
	"AVX2":        cpu.X86.HasAVX2,
	"BMI2":        cpu.X86.HasBMI2,
	"AVX_VNNI":    cpu.X86.HasAVXVNNI,
	"AVX512":      cpu.X86.HasAVX512F && cpu.X86.HasAVX512CD && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW,
	"AVX512_VBMI": cpu.X86.HasAVX512VBMI,
	"AVX512_VNNI": cpu.X86.HasAVX512VNNI,
	"AVX512_BF16": cpu.X86.HasAVX512BF16,
	"AMX_TILE":    cpu.X86.HasAMXTile,
	"AMX_INT8":    cpu.X86.HasAMXInt8,

	"DOTPROD":                cpu.ARM64.HasASIMDDP,
	"FP16_VECTOR_ARITHMETIC": cpu.ARM64.HasASIMDHP,
	"SVE":                    cpu.ARM64.HasSVE,
	"SVE2":                   cpu.ARM64.HasSVE2,
	"MATMUL_INT8":            cpu.ARM64.HasI8MM,
}
