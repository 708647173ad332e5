package backends

import "slices"

// Accelerator is a module for a device other than the processor, and what it takes to build one.
type Accelerator struct {
	Module
	Systems   []string // GOOS that have such devices
	Programs  []string // that the build runs
	Headers   []string // that the target's compiler must find
	Library   string   // that the target's linker must find, without lib and suffix; "" for none
	Shader    string   // an extension of GLSL that glslc must know; "" for none
	Variables []string // of the environment, that must name a folder: a vendor's kit
	Loader    []string // files of the system or its driver that the built module opens, and no archive brings
}

// Accelerators are the modules that a release may carry, one row each. The host's toolchain decides which it can build.
//
// Kernels are inside the modules where llama.cpp leaves a choice, so that one file is all there is to drop in.
var Accelerators = []Accelerator{
	{
		Module:   Module{Name: "vulkan", Target: "ggml-vulkan", Options: []string{"-DGGML_VULKAN=ON", "-DGGML_CPU=OFF"}},
		Systems:  []string{"linux", "windows", "android"},
		Programs: []string{"glslc"},
		Headers:  []string{"vulkan/vulkan.h", "spirv/unified1/spirv.hpp"},
		Library:  "vulkan",
		Shader:   "GL_KHR_cooperative_matrix", // this llama.cpp has shaders that want it whatever it found out about glslc
		Loader:   []string{"libvulkan.so.1", "libvulkan.so", "vulkan-1.dll"},
	},
	{
		Module:   Module{Name: "opencl", Target: "ggml-opencl", Options: []string{"-DGGML_OPENCL=ON", "-DGGML_OPENCL_EMBED_KERNELS=ON", "-DGGML_CPU=OFF"}},
		Systems:  []string{"linux", "windows", "android"},
		Programs: []string{"python3"},
		Headers:  []string{"CL/cl.h"},
		Library:  "OpenCL",
		Loader:   []string{"libOpenCL.so.1", "libOpenCL.so", "OpenCL.dll"},
	},
	{
		Module:   Module{Name: "cuda", Target: "ggml-cuda", Options: []string{"-DGGML_CUDA=ON", "-DGGML_CPU=OFF"}},
		Systems:  []string{"linux", "windows"},
		Programs: []string{"nvcc"},
		Loader:   []string{"libcuda.so.1", "libcudart.so.13", "libcudart.so.12", "libcublas.so.13", "libcublas.so.12", "nvcuda.dll"},
	},
	{
		Module:  Module{Name: "metal", Target: "ggml-metal", Options: []string{"-DGGML_METAL=ON", "-DGGML_METAL_EMBED_LIBRARY=ON", "-DGGML_CPU=OFF"}},
		Systems: []string{"darwin", "ios"},
		Headers: []string{"Metal/Metal.h"},
	},
	{
		Module:    Module{Name: "hexagon", Target: "ggml-hexagon", Options: []string{"-DGGML_HEXAGON=ON", "-DGGML_CPU=OFF"}},
		Systems:   []string{"android"},
		Variables: []string{"HEXAGON_SDK_ROOT", "HEXAGON_TOOLS_ROOT"},
		Loader:    []string{"libcdsprpc.so"},
	},
}

// On says whether the system has devices that the module is for.
func (a Accelerator) On(goos string) bool { return slices.Contains(a.Systems, goos) }
