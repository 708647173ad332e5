// The one function of bcryptprimitives.dll that Go's runtime calls, over an older one that every Wine has (RtlGenRandom, in
// advapi32 as SystemFunction036).
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);

__declspec(dllexport) BOOL WINAPI ProcessPrng(BYTE *to, SIZE_T n) {
	while (n > 0) {
		ULONG part = n < 1 << 20 ? (ULONG)n : 1 << 20;
		if (!SystemFunction036(to, part)) {
			return FALSE;
		}
		to += part;
		n -= part;
	}
	return TRUE;
}
