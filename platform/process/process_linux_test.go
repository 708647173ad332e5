package process

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/bmoe/bmoe/platform/storage"
)

func TestStorageReadsAndMajorFaults(t *testing.T) {
	const size = 4 << 20
	dir := t.TempDir()
	var fs unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &fs))
	if fs.Type == unix.TMPFS_MAGIC {
		dir, _ = os.MkdirTemp("/var/tmp", "process-*")
		t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	}
	path := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(path, make([]byte, size), 0o600))
	require.NoError(t, storage.DropCache(path))

	before, err := Read()
	require.NoError(t, err)
	require.NoError(t, storage.ReadAhead(path, 0, size))
	read, err := Read()
	require.NoError(t, err)
	assert.GreaterOrEqual(t, read.StorageRead-before.StorageRead, int64(size))
	require.NoError(t, storage.ReadAhead(path, 0, size))
	again, err := Read()
	require.NoError(t, err)
	assert.Less(t, again.StorageRead-read.StorageRead, int64(size), "the second time it comes from the cache")

	require.NoError(t, storage.DropCache(path))
	left, err := storage.Cached(path)
	require.NoError(t, err)
	require.Zero(t, left)
	f, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	m, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	require.NoError(t, err)
	require.NoError(t, unix.Madvise(m, unix.MADV_RANDOM))
	for off := 0; off < size; off += size / 32 { // the kernel forgets to count a fault now and then
		assert.Zero(t, m[off])
	}
	require.NoError(t, unix.Munmap(m))
	faulted, err := Read()
	require.NoError(t, err)
	assert.Greater(t, faulted.MajorFaults, again.MajorFaults)
}

func TestParse(t *testing.T) {
	t.Parallel()
	status := "Name:\tx\nVmHWM:\t   40 kB\nVmRSS:\t   30 kB\nVmLck:\t    8 kB\nRssAnon:\t   20 kB\n"
	u, err := parse(status, "rchar: 9\nread_bytes: 12345\nwrite_bytes: 1\n")
	require.NoError(t, err)
	assert.Equal(t, Usage{Anonymous: 20 << 10, Locked: 8 << 10, Resident: 30 << 10, PeakResident: 40 << 10, StorageRead: 12345, MajorFaults: Unknown}, u)

	u, err = parse("", "")
	require.NoError(t, err)
	assert.Equal(t, unknown, u)

	_, err = parse("VmRSS:\tlots\n", "")
	require.ErrorContains(t, err, "VmRSS")
}
