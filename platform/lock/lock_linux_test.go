package lock

import (
	"errors"
	"io/fs"
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInPlaceFromItsSources(t *testing.T) {
	t.Parallel()
	const can = 3 << 30
	for _, c := range []struct {
		name, status string
		limit        uint64
		want         int64
		says         string
	}{
		{"net of what is locked", "VmLck:\t    1024 kB\nCapEff:\t0000000000000000\n", 8 << 20, 7 << 20, "8192 KiB (ulimit -l), of which this process has locked 1024 KiB"},
		{"all used", "VmLck:\t 9000 kB\nCapEff:\t0\n", 8 << 20, 0, "locked 9000 KiB"},
		{"nothing is granted", "VmLck:\t 0 kB\nCapEff:\t0\n", 0, 0, "limit of 0 KiB"},
		{"whole pages", "VmLck:\t 4 kB\nCapEff:\t0\n", 3*4096 + 4095, 2 * 4096, "ulimit -l"},
		{"less than may be locked can be held", "VmLck:\t 0 kB\nCapEff:\t0\n", 8 << 30, can, "no more than it may hold"},
		{"no limit", "VmLck:\t 0 kB\nCapEff:\t0\n", math.MaxUint64, can, "no limit"},
		{"the capability", "VmLck:\t 0 kB\nCapEff:\t000001ffffffffff\n", 8 << 20, can, "CAP_IPC_LOCK"},
	} {
		tree := fstest.MapFS{"proc/self/status": {Data: []byte(c.status)}}
		got, from, err := inPlaceOf(tree, c.limit, 4096, func() (int64, error) { return can, nil })
		require.NoError(t, err, c.name)
		assert.Equal(t, c.want, got, c.name)
		assert.Contains(t, from, c.says, c.name)
	}
}

func TestInPlaceThatCannotBeRead(t *testing.T) {
	t.Parallel()
	fine := func() (int64, error) { return 1 << 30, nil }
	for says, status := range map[string]string{
		"states no CapEff": "VmLck:\t 0 kB\n", "states no VmLck": "CapEff:\t0\n", `VmLck is "many kB"`: "CapEff:\t0\nVmLck:\tmany kB\n", "CapEff": "CapEff:\tzz\n",
	} {
		_, _, err := inPlaceOf(fstest.MapFS{"proc/self/status": {Data: []byte(status)}}, 8<<20, 4096, fine)
		require.ErrorContains(t, err, says)
	}
	_, _, err := inPlaceOf(fstest.MapFS{}, 8<<20, 4096, fine)
	require.ErrorIs(t, err, fs.ErrNotExist)
	status := fstest.MapFS{"proc/self/status": {Data: []byte("CapEff:\t0\nVmLck:\t0 kB\n")}}
	_, _, err = inPlaceOf(status, 8<<20, 4096, func() (int64, error) { return 0, errors.New("no meminfo") })
	require.ErrorContains(t, err, "no meminfo")
}

func FuzzLocked(f *testing.F) {
	f.Add("VmLck:\t 12 kB\n")
	f.Add("VmLck:\t-1 kB\n")
	f.Add("VmLck:\t9223372036854775807 kB\n")
	f.Fuzz(func(t *testing.T, status string) {
		n, err := parseLocked(status)
		if err == nil && (n < 0 || !strings.Contains(status, "VmLck:")) {
			t.Errorf("%d bytes out of %q", n, status)
		}
	})
}
