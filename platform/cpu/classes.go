package cpu

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// kind is what makes cores alike: how much they do for a system that compares them, and their highest frequency.
type kind struct{ rank, frequency int64 }

// grouped counts the cores of each kind, fastest first. Cores of different design may rank against their frequencies, which
// then compare nothing and are left out.
func grouped(cores map[string]kind) []Class {
	counts := map[kind]int{}
	for _, k := range cores {
		counts[k]++
	}
	kinds := make([]kind, 0, len(counts))
	for k := range counts {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b kind) int {
		return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(b.frequency, a.frequency))
	})
	compare := slices.IsSortedFunc(kinds, func(a, b kind) int { return cmp.Compare(b.frequency, a.frequency) })
	classes := make([]Class, len(kinds))
	for i, k := range kinds {
		classes[i].Count = counts[k]
		if compare {
			classes[i].Frequency = k.frequency
		}
	}
	return classes
}

// cpuSets reads SYSTEM_CPU_SET_INFORMATION records, as GetSystemCpuSetInformation of Windows gives them, for the CPUs of a
// mask in the first group of 64, or all with a mask of 0. A record is its size and type (32 bits each, type 0), an id (32),
// the group (16), the CPU and its core in the group, the cache, the node and the efficiency class (8 each), and more. A
// higher class is a faster core.
func cpuSets(info []byte, mask uint64) map[string]kind {
	cores := map[string]kind{}
	for len(info) >= 20 {
		size := binary.LittleEndian.Uint32(info)
		if size < 20 || int64(size) > int64(len(info)) {
			break
		}
		group, cpu := binary.LittleEndian.Uint16(info[12:]), info[14]
		if binary.LittleEndian.Uint32(info[4:]) == 0 && (mask == 0 || (group == 0 && cpu < 64 && mask&(1<<cpu) != 0)) {
			cores[string([]byte{info[12], info[13], info[15]})] = kind{rank: int64(info[18])}
		}
		info = info[size:]
	}
	return cores
}
