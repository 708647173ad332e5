// Package mach asks the kernel of Apple's systems what its system calls do not say.
//
// It calls functions of libSystem by name, the way golang.org/x/sys does, so it needs no C compiler. It must not know what
// the figures are used for.
package mach

import (
	"fmt"
	"syscall"
	"unsafe"
)

// Pages is the system's account of its pages, counted in pages of [os.Getpagesize].
type Pages struct {
	Free, Active, Inactive, Wired uint64
	External                      uint64 // backed by files
	Internal                      uint64 // anonymous
	Purgeable                     uint64
	Compressed                    uint64 // that the compressor holds
	Compressor                    uint64 // that it takes for them
}

// statistics is struct vm_statistics64 of mach/vm_statistics.h.
type statistics struct {
	free, active, inactive, wired                                   uint32
	zeroFill, reactivations, pageins, pageouts, faults, copyOnWrite uint64
	lookups, hits, purges                                           uint64
	purgeable, speculative                                          uint32
	decompressions, compressions, swapins, swapouts                 uint64
	compressor, throttled, external, internal                       uint32
	uncompressed                                                    uint64
}

const (
	hostInfo64    = 4  // HOST_VM_INFO64 of mach/host_info.h
	machTaskBasic = 20 // MACH_TASK_BASIC_INFO of mach/task_info.h
)

// Count reads host_statistics64.
func Count() (Pages, error) {
	host, _, _ := syscall_syscall(mach_host_self_trampoline_addr, 0, 0, 0)
	var s statistics
	n := uint32(unsafe.Sizeof(s) / 4) // in words, as the kernel counts structures
	// unsafe hands the kernel structures to fill, which live until the call returns.
	code, _, _ := syscall_syscall6(host_statistics64_trampoline_addr, host, hostInfo64, uintptr(unsafe.Pointer(&s)), uintptr(unsafe.Pointer(&n)), 0, 0)
	self, _, _ := syscall_syscall(mach_task_self_trampoline_addr, 0, 0, 0)
	_, _, _ = syscall_syscall(mach_port_deallocate_trampoline_addr, self, host, 0)
	if int32(code) != 0 {
		return Pages{}, fmt.Errorf("host_statistics64: Mach error %d", int32(code))
	}
	return Pages{
		Free: uint64(s.free), Active: uint64(s.active), Inactive: uint64(s.inactive), Wired: uint64(s.wired),
		External: uint64(s.external), Internal: uint64(s.internal), Purgeable: uint64(s.purgeable),
		Compressed: s.uncompressed, Compressor: uint64(s.compressor),
	}, nil
}

// taskBasic is struct mach_task_basic_info.
type taskBasic struct {
	virtual, resident, residentMax uint64
	user, system                   [2]int32
	policy, suspended              int32
}

// Task is the address space that this process has taken, and what of it is in memory, in bytes.
func Task() (virtual, resident int64, err error) {
	self, _, _ := syscall_syscall(mach_task_self_trampoline_addr, 0, 0, 0)
	var s taskBasic
	n := uint32(unsafe.Sizeof(s) / 4)
	code, _, _ := syscall_syscall6(task_info_trampoline_addr, self, machTaskBasic, uintptr(unsafe.Pointer(&s)), uintptr(unsafe.Pointer(&n)), 0, 0)
	if int32(code) != 0 {
		return 0, 0, fmt.Errorf("task_info: Mach error %d", int32(code))
	}
	return int64(s.virtual), int64(s.resident), nil
}

//go:linkname syscall_syscall syscall.syscall
func syscall_syscall(fn, a1, a2, a3 uintptr) (r1, r2 uintptr, err syscall.Errno)

//go:linkname syscall_syscall6 syscall.syscall6
func syscall_syscall6(fn, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err syscall.Errno)

//go:cgo_import_dynamic libc_mach_host_self mach_host_self "/usr/lib/libSystem.B.dylib"
//go:cgo_import_dynamic libc_host_statistics64 host_statistics64 "/usr/lib/libSystem.B.dylib"
//go:cgo_import_dynamic libc_mach_task_self task_self_trap "/usr/lib/libSystem.B.dylib"
//go:cgo_import_dynamic libc_mach_port_deallocate mach_port_deallocate "/usr/lib/libSystem.B.dylib"
//go:cgo_import_dynamic libc_task_info task_info "/usr/lib/libSystem.B.dylib"

var (
	mach_host_self_trampoline_addr       uintptr
	host_statistics64_trampoline_addr    uintptr
	mach_task_self_trampoline_addr       uintptr
	mach_port_deallocate_trampoline_addr uintptr
	task_info_trampoline_addr            uintptr
)
