package storage

import (
	"bytes"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// diskDir is a directory whose file system is not in memory.
func diskDir(t *testing.T) string {
	t.Helper()
	for _, parent := range []string{os.TempDir(), "/var/tmp", "."} {
		var fs unix.Statfs_t
		if unix.Statfs(parent, &fs) != nil || fs.Type == unix.TMPFS_MAGIC {
			continue
		}
		dir, err := os.MkdirTemp(parent, "storage-*")
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
		return dir
	}
	t.Fatal("no directory on a disk")
	return ""
}

func TestDirectReadsPassTheCache(t *testing.T) {
	t.Parallel()
	want := content(8 << 20)
	path := write(t, diskDir(t), want)
	f := open(t, path, true)
	require.True(t, f.Direct(), f.Why())
	assert.Equal(t, 0, f.Align()&(f.Align()-1))
	assert.GreaterOrEqual(t, f.Align(), 512)

	buffered := open(t, path, false)
	require.NoError(t, buffered.Advise(Random))
	require.NoError(t, DropCache(path))
	p := aligned(t, len(want))
	_, err := f.ReadAt(p, 0)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, p))
	assert.Zero(t, cached(t, path))

	_, err = buffered.ReadAt(p, 0)
	require.NoError(t, err)
	assert.Equal(t, len(want), cached(t, path))
}

// Where the kernel states an alignment it is taken as it is, and as stated; what stands in for it elsewhere is not called stated.
func TestAlignmentIsThatOfStatx(t *testing.T) {
	t.Parallel()
	path := write(t, diskDir(t), content(1<<20))
	var st unix.Statx_t
	require.NoError(t, unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_DIOALIGN, &st))
	f := open(t, path, true)
	require.True(t, f.Direct(), f.Why())
	from, stated := f.AlignFrom()
	if st.Mask&unix.STATX_DIOALIGN == 0 {
		assert.False(t, stated)
		assert.Contains(t, from, "statx does not state one here")
		return
	}
	assert.True(t, stated, from)
	assert.Equal(t, "statx", from)
	assert.EqualValues(t, max(st.Dio_mem_align, st.Dio_offset_align), f.Align())
}

// Files opened at the same moment do not spoil each other's proof.
func TestDirectReadsOfOneFileOpenedManyTimes(t *testing.T) {
	t.Parallel()
	path := write(t, diskDir(t), content(4<<20))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 5 {
				f, err := Open(path, true)
				if assert.NoError(t, err) {
					assert.True(t, f.Direct(), f.Why())
					assert.NoError(t, f.Close())
				}
			}
		})
	}
	all.Wait()
}

func TestMemoryFileSystemIsReadThroughTheCache(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("/dev/shm", "storage-*")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	f := open(t, write(t, dir, content(1<<16)), true)
	assert.False(t, f.Direct())
	assert.Equal(t, 1, f.Align())
	assert.Contains(t, f.Why(), "in memory")
}

func TestDirectReadsAnsweredFromTheCacheAreFoundOut(t *testing.T) {
	t.Parallel()
	path := write(t, diskDir(t), content(1<<20))
	require.NoError(t, DropCache(path)) // what is not on storage yet cannot be dropped, and proves nothing
	pretender := open(t, path, false)
	pretender.align = 4096
	require.NoError(t, pretender.Advise(Random))
	require.ErrorContains(t, open(t, path, false).compare(pretender), "from memory")
}

func TestReadAheadAndDrop(t *testing.T) {
	t.Parallel()
	const size = 8 << 20
	path := write(t, diskDir(t), content(size))
	f := open(t, path, false)
	require.NoError(t, DropCache(path))
	require.Zero(t, cached(t, path), "pages not yet on storage are written back and dropped too")

	require.NoError(t, ReadAhead(path, 0, size))
	require.Equal(t, size, cached(t, path))

	require.NoError(t, DropRange(path, 2<<20, 4<<20)) // whole pages even where the cache uses large ones
	require.Equal(t, 4<<20, cached(t, path))
	assert.True(t, f.absent(2<<20, 4<<20))
}

func TestPipeIsRefused(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/pipe"
	require.NoError(t, unix.Mkfifo(path, 0o600))
	_, err := Open(path, true)
	require.ErrorContains(t, err, "not a regular file")
}

func cached(t *testing.T, path string) int {
	t.Helper()
	n, err := Cached(path)
	require.NoError(t, err)
	return int(n)
}
