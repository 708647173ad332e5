package lock

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// The store is AHardwareBuffer of libandroid.so (android/hardware_buffer.h, API level 26): memory that devices may use, which
// the kernel neither compresses nor swaps out. How much of it there is, is not published.

const (
	formatBlob    = 0x21
	cpuReadWrites = 0x3 | 0x30 // AHARDWAREBUFFER_USAGE_CPU_READ_OFTEN and _WRITE_OFTEN
)

// description is AHardwareBuffer_Desc. A blob is a line of width bytes.
type description struct {
	width, height, layers, format uint32
	usage                         uint64
	stride, reserved              uint32
	reserved2                     uint64
}

// buffers is libandroid's interface.
var buffers = sync.OnceValues(func() (*library, error) {
	h, err := purego.Dlopen("libandroid.so", purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	var l library
	for name, into := range map[string]any{
		"AHardwareBuffer_allocate": &l.allocate, "AHardwareBuffer_release": &l.release,
		"AHardwareBuffer_lock": &l.lock, "AHardwareBuffer_unlock": &l.unlock,
	} {
		symbol, err := purego.Dlsym(h, name)
		if err != nil {
			return nil, fmt.Errorf("libandroid.so has no %s: %w", name, err)
		}
		purego.RegisterFunc(into, symbol)
	}
	return &l, nil
})

type library struct {
	allocate func(d *description, out *uintptr) int32
	release  func(buffer uintptr)
	lock     func(buffer uintptr, usage uint64, fence int32, rect uintptr, out *uintptr) int32
	unlock   func(buffer uintptr, fence uintptr) int32
}

// store takes a page out of it: a library that is there may still refuse.
func store() (bool, string, error) {
	page, err := alloc(os.Getpagesize())
	if err != nil {
		return false, "", err
	}
	return true, "AHardwareBuffer", page.Free()
}

func storeTotal() (int64, string, error) {
	return 0, "", errors.New("AHardwareBuffer publishes no total")
}

func alloc(n int) (held, error) {
	l, err := buffers()
	if err != nil {
		return nil, err
	}
	if int64(n) >= 1<<32 {
		return nil, errors.New("an AHardwareBuffer holds less than 4096 MiB")
	}
	b := &buffer{library: l}
	d := description{width: uint32(n), height: 1, layers: 1, format: formatBlob, usage: cpuReadWrites}
	if code := l.allocate(&d, &b.handle); code != 0 {
		return nil, fmt.Errorf("AHardwareBuffer_allocate: error %d", code)
	}
	var base uintptr
	if code := l.lock(b.handle, cpuReadWrites, -1, 0, &base); code != 0 {
		l.release(b.handle)
		return nil, fmt.Errorf("AHardwareBuffer_lock: error %d", code)
	}
	// The system gives an address; only unsafe makes it memory for Go. That is sound: it stays valid until Free, is outside
	// the Go heap, and the pointer is read out of the variable that holds the address, once.
	b.base, b.bytes = base, unsafe.Slice(*(**byte)(unsafe.Pointer(&base)), n)
	return b, nil
}

type buffer struct {
	*library
	handle, base uintptr
	bytes        []byte
}

func (b *buffer) Bytes() []byte { return b.bytes }

func (b *buffer) Base() uintptr { return b.base }

func (b *buffer) Free() error {
	if b.bytes == nil {
		return nil
	}
	b.base, b.bytes = 0, nil
	code := b.unlock(b.handle, 0)
	b.release(b.handle)
	if code != 0 {
		return fmt.Errorf("AHardwareBuffer_unlock: error %d", code)
	}
	return nil
}
