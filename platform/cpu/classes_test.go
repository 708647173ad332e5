package cpu

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestGrouped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		cores map[string]kind
		want  []Class
	}{
		{"alike", map[string]kind{"0": {1024, 3e9}, "1": {1024, 3e9}}, []Class{{2, 3e9}}},
		{"by frequency", map[string]kind{"0": {0, 2e9}, "1": {0, 4e9}, "2": {0, 2e9}}, []Class{{1, 4e9}, {2, 2e9}}},
		{"by rank", map[string]kind{"0": {1, 0}, "1": {2, 0}}, []Class{{1, 0}, {1, 0}}},
		{"by rank, then frequency", map[string]kind{"0": {400, 2e9}, "1": {1024, 3e9}, "2": {1024, 4e9}}, []Class{{1, 4e9}, {1, 3e9}, {1, 2e9}}},
		{"rank against frequency", map[string]kind{"0": {400, 3e9}, "1": {1024, 2e9}, "2": {1024, 2e9}}, []Class{{2, 0}, {1, 0}}},
	} {
		assert.Equal(t, c.want, grouped(c.cores), c.name)
	}
}

// cpuSet is a record of Windows.
func cpuSet(kind uint32, group uint16, cpu, core, class byte) []byte {
	b := make([]byte, 32)
	binary.LittleEndian.PutUint32(b, 32)
	binary.LittleEndian.PutUint32(b[4:], kind)
	binary.LittleEndian.PutUint16(b[12:], group)
	b[14], b[15], b[18] = cpu, core, class
	return b
}

func TestCPUSets(t *testing.T) {
	t.Parallel()
	hybrid := bytes.Join([][]byte{
		cpuSet(0, 0, 0, 0, 1), cpuSet(0, 0, 1, 0, 1), cpuSet(0, 0, 2, 2, 1), cpuSet(0, 0, 3, 2, 1), // two threads a core
		cpuSet(0, 0, 4, 4, 0), cpuSet(0, 0, 5, 5, 0), cpuSet(0, 0, 6, 6, 0),
		cpuSet(9, 0, 7, 7, 3), // of a type nobody knows yet
	}, nil)
	assert.Equal(t, []Class{{Count: 2}, {Count: 3}}, grouped(cpuSets(hybrid, 0)))
	assert.Equal(t, []Class{{Count: 1}, {Count: 1}}, grouped(cpuSets(hybrid, 1<<1|1<<4)))
	groups := append(cpuSet(0, 0, 0, 0, 0), cpuSet(0, 1, 0, 0, 0)...)
	assert.Equal(t, []Class{{Count: 2}}, grouped(cpuSets(groups, 0)), "a core of each group")
	assert.Empty(t, cpuSets(nil, 0))
}

func FuzzCPUSets(f *testing.F) {
	f.Add(cpuSet(0, 0, 0, 0, 1), uint64(0))
	f.Add([]byte{1, 0, 0, 0}, uint64(3))
	f.Fuzz(func(t *testing.T, info []byte, mask uint64) {
		n := 0
		for _, c := range grouped(cpuSets(info, mask)) {
			n += c.Count
		}
		if n > len(info)/20 {
			t.Errorf("%d cores in %d bytes", n, len(info))
		}
	})
}
