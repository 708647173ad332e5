package storage

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmoe/bmoe/platform/pages"
)

// content is what the tests' files hold: no two blocks are equal and the last is not whole.
func content(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
	return b
}

func write(t testing.TB, dir string, b []byte) string {
	t.Helper()
	path := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

func open(t testing.TB, path string, direct bool) *File {
	t.Helper()
	f, err := Open(path, direct)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, f.Close()) })
	return f
}

// aligned is memory that a direct read may fill.
func aligned(t testing.TB, n int) []byte {
	t.Helper()
	r, err := pages.Alloc(n)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Free()) })
	return r.Bytes()
}

// The contract holds whether or not the file system has direct reads.
func TestContract(t *testing.T) {
	t.Parallel()
	for _, direct := range []bool{false, true} {
		for _, size := range []int{1, 511, 4096, 4097, 1<<20 + 77} {
			want := content(size)
			path := write(t, t.TempDir(), want)
			f := open(t, path, direct)

			assert.EqualValues(t, size, f.Size())
			assert.Equal(t, path, f.Path())
			assert.NotEmpty(t, f.Why())
			if !direct {
				assert.False(t, f.Direct())
			}
			from, stated := f.AlignFrom()
			assert.NotEmpty(t, from)
			if !f.Direct() {
				assert.Equal(t, 1, f.Align())
				assert.False(t, stated)
			}

			p := aligned(t, (size+maxAlign)&^(maxAlign-1))
			n, err := f.ReadAt(p, 0)
			assert.Equal(t, io.EOF, err)
			assert.True(t, bytes.Equal(want, p[:n]), "direct %v, %d bytes", direct, size)

			n, err = f.ReadAt(p[:f.Align()], int64((size+f.Align()-1)&^(f.Align()-1)))
			assert.Equal(t, io.EOF, err)
			assert.Zero(t, n)

			n, err = f.ReadAt(nil, 0)
			require.NoError(t, err)
			assert.Zero(t, n)

			_, err = f.ReadAt(p[:f.Align()], -int64(f.Align()))
			require.ErrorContains(t, err, path)
		}
	}
}

func TestAnyBlocksReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	want := content(300_001)
	path := write(t, t.TempDir(), want)
	for _, direct := range []bool{false, true} {
		f := open(t, path, direct)
		buf := aligned(t, 1<<20)
		rapid.Check(t, func(t *rapid.T) {
			a := f.Align()
			off := rapid.IntRange(0, len(want)/a).Draw(t, "block") * a
			p := buf[:rapid.IntRange(0, len(want)/a+2).Draw(t, "blocks")*a]
			n, err := f.ReadAt(p, int64(off))
			switch {
			case off+len(p) > len(want):
				assert.Equal(t, io.EOF, err)
				assert.Equal(t, len(want)-off, n)
			default:
				require.NoError(t, err)
				assert.Equal(t, len(p), n)
			}
			assert.True(t, bytes.Equal(want[off:off+n], p[:n]))
		})
	}
}

func TestReadsRunConcurrently(t *testing.T) {
	t.Parallel()
	want := content(64 << 12)
	path := write(t, t.TempDir(), want)
	for _, direct := range []bool{false, true} {
		f := open(t, path, direct)
		buf := aligned(t, len(want))
		var readers sync.WaitGroup
		for i := range 8 {
			readers.Go(func() {
				for block := i; block < 64; block += 8 {
					off := block << 12
					n, err := f.ReadAt(buf[off:off+4096], int64(off))
					assert.NoError(t, err)
					assert.Equal(t, 4096, n)
				}
			})
		}
		readers.Wait()
		assert.True(t, bytes.Equal(want, buf))
	}
}

func TestReadsThatDirectReadsCannotServe(t *testing.T) {
	t.Parallel()
	f := open(t, write(t, t.TempDir(), content(1<<16)), true)
	f.align = 4096 // as on a drive with such blocks, whatever this one has
	p := aligned(t, 8192)
	for _, c := range []struct{ n, off int }{{100, 0}, {4096, 100}, {4095, 4096}} {
		_, err := f.ReadAt(p[:c.n], int64(c.off))
		require.ErrorContains(t, err, f.Path())
		require.ErrorContains(t, err, "whole blocks of 4096")
	}
}

func TestFileTruncatedWhileOpen(t *testing.T) {
	t.Parallel()
	for _, direct := range []bool{false, true} {
		path := write(t, t.TempDir(), content(1<<16))
		f := open(t, path, direct)
		require.NoError(t, os.Truncate(path, 20_000))
		p := aligned(t, 1<<16)

		n, err := f.ReadAt(p[:16384], 0)
		require.NoError(t, err, "what is left can be read")
		assert.Equal(t, 16384, n)

		n, err = f.ReadAt(p, 0)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.ErrorContains(t, err, path)
		require.ErrorContains(t, err, "at 20000")
		assert.Equal(t, 20_000, n)

		n, err = f.ReadAt(p[:4096], 1<<15)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.ErrorContains(t, err, "at 32768")
		assert.Zero(t, n)
	}
}

func TestFileThatGrowsKeepsItsSize(t *testing.T) {
	t.Parallel()
	for _, direct := range []bool{false, true} {
		path := write(t, t.TempDir(), content(5000))
		f := open(t, path, direct)
		require.NoError(t, os.WriteFile(path, content(10_000), 0o600))
		n, err := f.ReadAt(aligned(t, 8192), 0)
		assert.Equal(t, io.EOF, err)
		assert.Equal(t, 5000, n)
	}
}

func TestWhatIsNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, direct := range []bool{false, true} {
		_, err := Open(dir, direct)
		require.ErrorContains(t, err, "not a regular file")

		missing := filepath.Join(dir, "missing")
		_, err = Open(missing, direct)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorContains(t, err, missing)

		f := open(t, write(t, dir, nil), direct)
		assert.False(t, f.Direct())
		_, err = f.ReadAt(make([]byte, 10), 0)
		assert.Equal(t, io.EOF, err)
	}
}

// A file system that takes the request for direct reads and then returns something else is found out.
func TestDirectReadsAreNotTakenOnTrust(t *testing.T) {
	t.Parallel()
	size := 3 * 4096
	dir := t.TempDir()
	want := content(size)
	honest := open(t, write(t, dir, want), false)
	for _, c := range []struct {
		name string
		lie  func([]byte)
	}{
		{"first block", func(b []byte) { b[0]++ }},
		{"middle block", func(b []byte) { b[size/2]++ }},
		{"last block", func(b []byte) { b[size-1]++ }},
	} {
		other := bytes.Clone(want)
		c.lie(other)
		liar := open(t, write(t, t.TempDir(), other), false)
		liar.align = 4096
		require.ErrorContains(t, honest.compare(liar), "other bytes", c.name)
	}

	short := open(t, write(t, t.TempDir(), want[:4096]), false)
	short.align, short.size = 4096, honest.size
	err := honest.compare(short)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorContains(t, err, "direct reads fail")
}

// A mapping lives without its file open, whatever becomes of that.
func TestMapping(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := write(t, dir, content(100_000))
	m, err := Map(path)
	require.NoError(t, err)
	f := open(t, path, true)
	n, err := f.ReadAt(aligned(t, 1<<17), 0)
	assert.Equal(t, io.EOF, err)
	assert.Equal(t, 100_000, n)
	require.NoError(t, m.Close())

	missing := filepath.Join(dir, "missing")
	_, err = Map(missing)
	require.ErrorContains(t, err, missing)
	_, err = Map(write(t, dir, nil))
	require.ErrorContains(t, err, "map "+path+": the file is empty")
}

func TestFreeSpace(t *testing.T) {
	t.Parallel()
	n, err := FreeSpace(t.TempDir())
	require.NoError(t, err)
	assert.Positive(t, n)
	_, err = FreeSpace(filepath.Join(t.TempDir(), "missing"))
	require.Error(t, err)
}

func TestCacheMovesNameTheFile(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	for _, err := range []error{ReadAhead(missing, 0, 1), DropCache(missing), DropRange(missing, 0, 1)} {
		require.ErrorContains(t, err, missing)
	}
	path := write(t, t.TempDir(), content(10_000))
	for _, c := range []struct{ off, n int64 }{{0, 0}, {0, 10_000}, {9_999, 100}, {20_000, 1}, {4096, -1}} {
		require.NoError(t, ReadAhead(path, c.off, c.n))
	}
	if err := DropCache(path); !errors.Is(err, errors.ErrUnsupported) {
		require.NoError(t, err)
	}
}

func TestReadAtAllocatesNothing(t *testing.T) {
	path := write(t, t.TempDir(), content(1<<16))
	for _, direct := range []bool{false, true} {
		f := open(t, path, direct)
		p := aligned(t, 8192)
		assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = f.ReadAt(p, 4096) }))
	}
}

func BenchmarkReadAt(b *testing.B) {
	const slice = 256 << 10
	path := write(b, b.TempDir(), content(64<<20))
	for name, direct := range map[string]bool{"buffered": false, "direct": true} {
		b.Run(name, func(b *testing.B) {
			f := open(b, path, direct)
			p := aligned(b, slice)
			b.SetBytes(slice)
			b.ReportAllocs()
			var off int64
			for b.Loop() {
				if _, err := f.ReadAt(p, off); err != nil {
					b.Fatal(err)
				}
				off = (off + slice) % f.Size()
			}
		})
	}
}
