package storage

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/bmoe/bmoe/platform/pages"
)

func openHandle(path string, direct bool) (handle, error) {
	if direct {
		return openDescriptor(path, unix.O_DIRECT)
	}
	return openDescriptor(path, 0)
}

// directAlign asks statx, which knows since Linux 6.1 and not for every file system; the block size of the file system
// serves where it does not.
func (h handle) directAlign() (int, error) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(h), &fs); err != nil {
		return 0, err
	}
	switch fs.Type {
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC:
		return 0, errors.New("the file is on a file system in memory")
	}
	var st unix.Statx_t
	err := unix.Statx(int(h), "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &st)
	if err == nil && st.Mask&unix.STATX_DIOALIGN != 0 {
		if st.Dio_mem_align == 0 {
			return 0, errors.New("the file system has no direct reads for this file")
		}
		return int(max(st.Dio_mem_align, st.Dio_offset_align)), nil
	}
	if n := int(fs.Bsize); n >= 512 && n <= 64<<10 && n&(n-1) == 0 {
		return n, nil
	}
	return usualAlign, nil
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
