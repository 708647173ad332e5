//go:build ios

#include "textflag.h"

TEXT os_proc_available_memory_trampoline<>(SB),NOSPLIT,$0-0
	JMP	libc_os_proc_available_memory(SB)
GLOBL	·os_proc_available_memory_trampoline_addr(SB), RODATA, $8
DATA	·os_proc_available_memory_trampoline_addr(SB)/8, $os_proc_available_memory_trampoline<>(SB)
