package storage

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bmoe/bmoe/platform/pages"
)

func openHandle(path string, direct bool) (handle, error) {
	if direct {
		return openDescriptor(path, unix.O_DIRECT)
	}
	return openDescriptor(path, 0)
}

// directBlock asks statx (STATX_DIOALIGN, statx(2)), which knows since Linux 6.1 and not for every file system; the block
// size of the file system stands in where it does not.
func (h handle) directBlock() (block, error) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(h), &fs); err != nil {
		return block{}, err
	}
	switch fs.Type {
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC:
		return block{}, errors.New("the file is on a file system in memory")
	}
	var st unix.Statx_t
	err := unix.Statx(int(h), "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &st)
	if err == nil && st.Mask&unix.STATX_DIOALIGN != 0 {
		if st.Dio_mem_align == 0 {
			return block{}, errors.New("the file system has no direct reads for this file")
		}
		return block{int(max(st.Dio_mem_align, st.Dio_offset_align)), "statx", true}, nil
	}
	if n := int(fs.Bsize); n >= 512 && n <= 64<<10 && n&(n-1) == 0 {
		return block{bytes: n, from: "statx does not state one here; the file system's blocks serve"}, nil
	}
	return block{bytes: usualAlign, from: "statx does not state one here"}, nil
}

// stored does a read and reports whether the system counted it as one from storage (read_bytes, proc_pid_io(5)). It is asked of
// overlays alone, which hide the file system below: one in memory takes direct reads, and cachestat(2) is not shown its pages.
func (h handle) stored(read func()) (was, known bool) {
	var fs unix.Statfs_t
	if unix.Fstatfs(int(h), &fs) != nil || fs.Type != unix.OVERLAYFS_SUPER_MAGIC {
		read()
		return false, false
	}
	runtime.LockOSThread() // that the count is of
	defer runtime.UnlockOSThread()
	before, known := countedRead()
	read()
	after, still := countedRead()
	return after > before, known && still
}

// countedRead is how many bytes this thread had read from storage.
func countedRead() (bytes int64, known bool) {
	text, err := os.ReadFile("/proc/thread-self/io")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "read_bytes: "); ok {
			bytes, err = strconv.ParseInt(strings.TrimSpace(n), 10, 64)
			return bytes, err == nil
		}
	}
	return 0, false
}

func (h handle) advise(a Advice) error {
	advice := [...]int{Normal: unix.FADV_NORMAL, Sequential: unix.FADV_SEQUENTIAL, Random: unix.FADV_RANDOM}
	return unix.Fadvise(int(h), 0, 0, advice[a])
}

// drop leaves pages that are not on storage yet, unless flush writes them back first: all of the file's, and waits.
func (h handle) drop(off, n int64, flush bool) error {
	if flush {
		if err := unix.Fdatasync(int(h)); err != nil && !errors.Is(err, unix.EROFS) && !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	return unix.Fadvise(int(h), off, n, unix.FADV_DONTNEED)
}

// cached counts the bytes of [off, off+n) in the page cache, whole pages. Linux tells since 6.5, and only those who may
// write the file. (A read with RWF_NOWAIT tells too, but starts to read what is missing.)
func (h handle) cached(off, n int64) (int64, error) {
	var st unix.Cachestat_t
	err := unix.Cachestat(uint(h), &unix.CachestatRange{Off: uint64(off), Len: uint64(n)}, &st, 0)
	return int64(st.Cache) * int64(pages.Size()), err
}

func freeSpace(dir string) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	unit := fs.Frsize
	if unit == 0 {
		unit = fs.Bsize
	}
	return int64(fs.Bavail) * int64(unit), nil
}
