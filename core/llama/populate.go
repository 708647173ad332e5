package llama

import (
	"unsafe"

	"github.com/ebitengine/purego"
)

// populate stands between llama.cpp's loader and the CPU backend's registry.
//
// The loader maps a file with all of its pages (MAP_POPULATE, WILLNEED) unless the registry of the CPU's device answers
// "ggml_backend_cpu_is_numa" with true, and asks that nowhere else (llama_model_loader::init_mappings). So while a load is
// to read nothing of its own accord, that name is answered with a function that says true; every other is passed on.
var populate struct {
	installed bool
	off       bool
	registry  Registry // the copy that the CPU's device points to; C reads it for as long as the process lives
	original  uintptr
	next      func(reg uintptr, name uintptr) uintptr
	yes       uintptr
}

// WithoutPopulate runs load with mappings that are address space only.
func (l *Library) WithoutPopulate(load func() error) error {
	p := &populate
	if !p.installed {
		d := (*Device)(Pointer(l.cpuDevice)) // static memory of the CPU module
		p.original = d.Registry
		p.registry = *(*Registry)(Pointer(d.Registry))
		purego.RegisterFunc(&p.next, p.registry.Interface.GetProcAddress)
		p.yes = purego.NewCallback(func() uintptr { return 1 })
		p.registry.Interface.GetProcAddress = purego.NewCallback(func(_ uintptr, name uintptr) uintptr {
			if p.off && GoString(name) == "ggml_backend_cpu_is_numa" {
				return p.yes
			}
			return p.next(p.original, name)
		})
		d.Registry = uintptr(unsafe.Pointer(&p.registry)) // a Go variable: it does not move, and populate keeps it
		p.installed = true
	}
	p.off = true
	defer func() { p.off = false }()
	return load()
}
