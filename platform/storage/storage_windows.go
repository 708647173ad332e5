package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/windows"
)

var errUnsupported = fmt.Errorf("not yet on this system: %w", errors.ErrUnsupported)

type handle windows.Handle

func openHandle(path string, direct bool) (handle, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, err
	}
	flags := uint32(windows.FILE_ATTRIBUTE_NORMAL)
	if direct {
		flags |= windows.FILE_FLAG_NO_BUFFERING
	}
	h, err := windows.CreateFile(name, windows.GENERIC_READ,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil, windows.OPEN_EXISTING, flags, 0)
	return handle(h), err
}

func (h handle) size() (int64, error) {
	var info windows.ByHandleFileInformation
	err := windows.GetFileInformationByHandle(windows.Handle(h), &info)
	return int64(info.FileSizeHigh)<<32 | int64(info.FileSizeLow), err
}

// directBlock is the drive's sector: the first field of FILE_STORAGE_INFO, seven of 32 bits.
func (h handle) directBlock() (block, error) {
	info := make([]byte, 28)
	if err := windows.GetFileInformationByHandleEx(windows.Handle(h), windows.FileStorageInfo, &info[0], uint32(len(info))); err != nil {
		return block{bytes: usualAlign, from: "the file system does not state its sectors"}, nil
	}
	return block{int(binary.LittleEndian.Uint32(info)), "the volume's logical sector", true}, nil
}

// request is what a read hands to the system. It is kept between reads, so that they allocate nothing.
type request struct {
	done uint32
	at   windows.Overlapped
}

var requests = sync.Pool{New: func() any { return new(request) }}

func (h handle) pread(p []byte, off int64) (int, error) {
	const most = 1 << 30 // the system counts a read's bytes in 32 bits
	r := requests.Get().(*request)
	defer requests.Put(r)
	*r = request{at: windows.Overlapped{Offset: uint32(off), OffsetHigh: uint32(off >> 32)}}
	err := windows.ReadFile(windows.Handle(h), p[:min(len(p), most)], &r.done, &r.at)
	if err == windows.ERROR_HANDLE_EOF {
		err = nil
	}
	return int(r.done), err
}

// view is the address where a mapping begins.
type view uintptr

func (h handle) mapAll(int64) (view, error) {
	section, err := windows.CreateFileMapping(windows.Handle(h), nil, windows.PAGE_READONLY, 0, 0, nil)
	if err != nil {
		return 0, err
	}
	at, err := windows.MapViewOfFile(section, windows.FILE_MAP_READ, 0, 0, 0)
	return view(at), errors.Join(err, windows.CloseHandle(section)) // the view keeps the section
}

func (v view) unmap() error { return windows.UnmapViewOfFile(uintptr(v)) }

func (h handle) close() error { return windows.CloseHandle(windows.Handle(h)) }

// stored does a read; whether it was one from storage is not told.
func (h handle) stored(read func()) (was, known bool) {
	read()
	return false, false
}

// advise does nothing: Windows takes this advice only when a file is opened, and reads of any pattern are right without it.
func (h handle) advise(Advice) error { return nil }

func (h handle) drop(off, n int64, flush bool) error { return errUnsupported }

func (h handle) cached(off, n int64) (int64, error) { return 0, errUnsupported }

func freeSpace(dir string) (int64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	return int64(free), err
}
