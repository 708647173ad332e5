//go:build darwin

#include "textflag.h"

TEXT mach_host_self_trampoline<>(SB),NOSPLIT,$0-0
	JMP	libc_mach_host_self(SB)
GLOBL	·mach_host_self_trampoline_addr(SB), RODATA, $8
DATA	·mach_host_self_trampoline_addr(SB)/8, $mach_host_self_trampoline<>(SB)

TEXT host_statistics64_trampoline<>(SB),NOSPLIT,$0-0
	JMP	libc_host_statistics64(SB)
GLOBL	·host_statistics64_trampoline_addr(SB), RODATA, $8
DATA	·host_statistics64_trampoline_addr(SB)/8, $host_statistics64_trampoline<>(SB)

TEXT mach_task_self_trampoline<>(SB),NOSPLIT,$0-0
	JMP	libc_mach_task_self(SB)
GLOBL	·mach_task_self_trampoline_addr(SB), RODATA, $8
DATA	·mach_task_self_trampoline_addr(SB)/8, $mach_task_self_trampoline<>(SB)

TEXT mach_port_deallocate_trampoline<>(SB),NOSPLIT,$0-0
	JMP	libc_mach_port_deallocate(SB)
GLOBL	·mach_port_deallocate_trampoline_addr(SB), RODATA, $8
DATA	·mach_port_deallocate_trampoline_addr(SB)/8, $mach_port_deallocate_trampoline<>(SB)

TEXT task_info_trampoline<>(SB),NOSPLIT,$0-0
	JMP	libc_task_info(SB)
GLOBL	·task_info_trampoline_addr(SB), RODATA, $8
DATA	·task_info_trampoline_addr(SB)/8, $task_info_trampoline<>(SB)
