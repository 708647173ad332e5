// Package storage answers: how is a file read without going through the system's file cache, and what does that take?
//
// It also moves ranges of a file into that cache and out of it, and says how much room a directory has. It must not know
// what the files contain.
package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"sync"

	"github.com/bmoe/bmoe/platform/pages"
)

// maxAlign bounds what is believed of an alignment that the system states.
const maxAlign = 1 << 20

// usualAlign is tried where the system states none, or states one that reads do not work with.
const usualAlign = 4096

// block is what the address, the offset and the length of direct reads must be multiples of, and whether the system says so
// of this very file or something stands in for that.
type block struct {
	bytes  int
	from   string
	stated bool
}

// Advice is how a file will be read.
type Advice int

// Normal lets the system read ahead as it likes, Sequential asks for more of that, Random for none.
const (
	Normal Advice = iota
	Sequential
	Random
)

// File is a regular file open for reading. Its methods may be called by several goroutines at once, except Close.
type File struct {
	path   string
	size   int64
	align  int
	from   string
	stated bool
	direct bool
	why    string
	handle handle
}

// Open opens a file. With direct it asks for reads past the file cache and proves that they work by comparing blocks at
// the start, in the middle and at the end with what ordinary reads return. Where the file system refuses them, returns
// other bytes or answers them from its cache, the file is open for ordinary reads and Why says what was found.
func Open(path string, direct bool) (*File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open %s: not a regular file", path)
	}
	h, err := openHandle(path, false)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := &File{path: path, align: 1, from: "ordinary reads need none", handle: h, why: "not asked for"}
	if f.size, err = h.size(); err != nil {
		return nil, errors.Join(&os.PathError{Op: "read the size of", Path: path, Err: err}, h.close())
	}
	if !direct {
		return f, nil
	}
	d, err := f.openDirect()
	if err != nil {
		f.why = err.Error()
		return f, nil
	}
	if err := f.Close(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// openDirect opens f's file again, for direct reads. The error says why it cannot be read so.
func (f *File) openDirect() (*File, error) {
	if f.size == 0 {
		return nil, errors.New("the file is empty")
	}
	b, err := f.handle.directBlock()
	if err != nil {
		return nil, err
	}
	if b.bytes > maxAlign || bits.OnesCount(uint(b.bytes)) != 1 {
		return nil, fmt.Errorf("the file system states an alignment of %d bytes", b.bytes)
	}
	h, err := openHandle(f.path, true)
	if err != nil {
		return nil, fmt.Errorf("the file system refuses direct reads: %w", err)
	}
	d := &File{path: f.path, size: f.size, align: b.bytes, from: b.from, stated: b.stated, direct: true, why: "direct reads return what ordinary reads do", handle: h}
	err = f.compare(d)
	if err != nil && b.bytes < usualAlign {
		d.from = fmt.Sprintf("%s, and reads of %d bytes do not work: %v; blocks of %d do", b.from, b.bytes, err, usualAlign)
		d.align, d.stated = usualAlign, false
		err = f.compare(d)
	}
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	return d, nil
}

// comparing keeps one file opened twice at once from reading into the cache what the other has just dropped.
var comparing sync.Mutex

// compare reads blocks of one file through the cache, f, and past it, d, and says how they differ. Where the system tells
// what it has cached, a block that was not there before a direct read and is there after it speaks against d. Another
// process may have read it in that moment, so a single block that stayed away clears d. Whether the system tells is seen by
// an ordinary read, which leaves its block there; where it does not, it may have counted what came from storage.
func (f *File) compare(d *File) error {
	comparing.Lock()
	defer comparing.Unlock()
	region, err := pages.Alloc(2 * d.align)
	if err != nil {
		return err
	}
	defer func() { _ = region.Free() }()
	past, through := region.Bytes()[:d.align], region.Bytes()[d.align:]
	if err := f.Advise(Random); err != nil {
		return err
	}
	defer func() { _ = f.Advise(Normal) }()
	const unit = 2 << 20 // a cache drops a large page only whole
	align := int64(d.align)
	stayed, came := 0, 0
	for _, block := range []int64{0, f.size / 2 / align, (f.size - 1) / align} {
		off := block * align
		dropped := f.handle.drop(off&^(unit-1), unit, false) == nil && f.absent(off, align)
		clear(past)
		var n int
		stored, counted := f.handle.stored(func() { n, err = d.ReadAt(past, off) })
		if err != nil && err != io.EOF {
			return fmt.Errorf("direct reads fail: %w", err)
		}
		away := f.absent(off, align)
		m, err := f.ReadAt(through, off)
		tells := dropped && !f.absent(off, align)
		switch {
		case tells && away, !tells && counted && stored:
			stayed++
		case tells, counted:
			came++
		}
		if err != nil && err != io.EOF {
			return fmt.Errorf("ordinary reads fail: %w", err)
		}
		if !bytes.Equal(past[:n], through[:m]) {
			return fmt.Errorf("a direct read at %d returns other bytes than an ordinary one", off)
		}
	}
	if came > 0 && stayed == 0 {
		return errors.New("the file system answers direct reads from memory")
	}
	return nil
}

// absent reports whether nothing of a range is in the cache. Where the system cannot tell it says no.
func (f *File) absent(off, n int64) bool {
	in, err := f.handle.cached(off, n)
	return err == nil && in == 0
}

// Direct reports whether reads go past the file cache.
func (f *File) Direct() bool { return f.direct }

// Why says, for people, how Direct was decided.
func (f *File) Why() string { return f.why }

// Align is what the address, the offset and the length of a read must be multiples of, in bytes: a power of two, 1 for
// ordinary reads.
func (f *File) Align() int { return f.align }

// AlignFrom says, for people, where Align is from, and whether the system states it of this file's direct reads. Where it
// states none, or one that reads do not work with, Align is one that they were seen to work with.
func (f *File) AlignFrom() (from string, stated bool) { return f.from, f.stated }

// Size is the file's size when it was opened, in bytes.
func (f *File) Size() int64 { return f.size }

// Path is the path that the file was opened by.
func (f *File) Path() string { return f.path }

// ReadAt fills p from off, as io.ReaderAt does: a read that crosses Size returns what is before it and io.EOF. With
// Direct, p's address, its length and off are multiples of Align. A file that no longer reaches Size gives an error that
// is io.ErrUnexpectedEOF. ReadAt allocates nothing unless it fails.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, f.failed(off, errors.New("there is nothing before the start"))
	}
	if (int64(len(p))|off)&int64(f.align-1) != 0 {
		return 0, f.failed(off, fmt.Errorf("%d bytes there are not whole blocks of %d", len(p), f.align))
	}
	if off >= f.size && len(p) > 0 {
		return 0, io.EOF
	}
	want := int(min(int64(len(p)), f.size-off))
	done := 0
	for done < want {
		n, err := f.handle.pread(p[done:], off+int64(done))
		if err != nil {
			return done, f.failed(off+int64(done), err)
		}
		if done+n >= want {
			break
		}
		// A short read. The next one starts at a whole block again; without progress the file ends here.
		whole := n &^ (f.align - 1)
		if whole == 0 {
			return done + n, f.failed(off+int64(done+n), fmt.Errorf("the file ends there now and had %d bytes when it was opened: %w", f.size, io.ErrUnexpectedEOF))
		}
		done += whole
	}
	if want < len(p) {
		return want, io.EOF
	}
	return want, nil
}

func (f *File) failed(off int64, err error) error {
	return fmt.Errorf("read %s at %d: %w", f.path, off, err)
}

// Advise tells the system how the file will be read through its cache.
func (f *File) Advise(a Advice) error {
	if err := f.handle.advise(a); err != nil {
		return &os.PathError{Op: "advise on", Path: f.path, Err: err}
	}
	return nil
}

// Close closes the file; no read may be running.
func (f *File) Close() error {
	if err := f.handle.close(); err != nil {
		return &os.PathError{Op: "close", Path: f.path, Err: err}
	}
	return nil
}

// ReadAhead reads n bytes from off into the system's file cache and returns when they are there, or at the end of the
// file. Large ranges are best asked for in pieces, between which a caller can stop.
func ReadAhead(path string, off, n int64) error {
	f, err := Open(path, false)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := f.Advise(Sequential); err != nil {
		return err
	}
	buf := make([]byte, min(max(n, 0), 4<<20))
	for n > 0 {
		got, err := f.ReadAt(buf[:min(n, int64(len(buf)))], off)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		off, n = off+int64(got), n-int64(got)
	}
	return nil
}

// DropCache takes a file out of the system's file cache, having written back what is not on storage yet. Pages that a
// process has mapped and touched stay.
func DropCache(path string) error { return DropRange(path, 0, 0) }

// DropRange is DropCache for n bytes from off, or from off to the end when n is 0. Pages that the range covers only in
// part stay.
func DropRange(path string, off, n int64) error {
	f, err := Open(path, false)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := f.handle.drop(off, n, true); err != nil {
		return &os.PathError{Op: "drop from the file cache", Path: path, Err: err}
	}
	return nil
}

// Cached is how many bytes of a file are in the system's file cache, in whole pages. Its error is errors.ErrUnsupported
// where the system does not tell.
func Cached(path string) (int64, error) {
	f, err := Open(path, false)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	n, err := f.handle.cached(0, f.size)
	if err != nil {
		return 0, &os.PathError{Op: "count the cached bytes of", Path: path, Err: err}
	}
	return n, nil
}

// FreeSpace is how many bytes this user may still write under dir.
func FreeSpace(dir string) (int64, error) {
	n, err := freeSpace(dir)
	if err != nil {
		return 0, &os.PathError{Op: "read the free space of", Path: dir, Err: err}
	}
	return n, nil
}
