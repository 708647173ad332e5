package mach

// Available is how many bytes this process may still take before the system ends it, as os_proc_available_memory of os/proc.h
// says it; 0 where the process has no such limit, or is past it.
func Available() int64 {
	n, _, _ := syscall_syscall(os_proc_available_memory_trampoline_addr, 0, 0, 0)
	return int64(n)
}

//go:cgo_import_dynamic libc_os_proc_available_memory os_proc_available_memory "/usr/lib/libSystem.B.dylib"

var os_proc_available_memory_trampoline_addr uintptr
