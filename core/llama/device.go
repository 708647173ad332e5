package llama

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"

	"github.com/bmoe/bmoe/platform/pages"
)

// Properties are what a device says of itself, which nobody has tried.
type Properties struct {
	HostBuffer  bool // it computes on buffers of the host, of a type that it names
	HostPointer bool // it wraps memory that it did not allocate. false is no evidence: backends that do it say so too
}

// Properties asks a device. Source: ggml_backend_dev_get_props and ggml_backend_dev_host_buffer_type of ggml-backend.h.
func (l *Library) Properties(dev uintptr) Properties {
	var p DeviceProps
	l.DevProps(dev, &p)
	host := l.DevHostBuffer(dev)
	return Properties{HostBuffer: host != 0 && l.DevSupportsBuffer(dev, host), HostPointer: p.BufferFromHostPtr}
}

// WrapsHostMemory hands memory of this process to a device that says it wraps such, and compares what it reads there with
// what was written. The error says how it does not do what it says. Never called of a device that does not say so: ggml
// calls through a pointer that may be null.
func (l *Library) WrapsHostMemory(dev uintptr) (err error) {
	const size = 1 << 20
	region, err := pages.Alloc(size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, region.Free()) }()
	memory := region.Bytes()
	for i := range memory {
		memory[i] = byte(i * 2654435761 >> 13)
	}
	// The region is outside the Go heap and outlives the buffer over it.
	l.captureErrors()
	buffer := l.DevFromHostPtr(dev, Addr(memory), size, size)
	said := l.captured()
	if buffer == 0 {
		return fmt.Errorf("it says that it wraps memory of the host and does not: %s", reason(said, "it gave no buffer"))
	}
	defer l.BufferFree(buffer)
	ctx := l.Init(initParams{Size: 1 << 16, NoAlloc: true})
	defer l.GGMLFree(ctx)
	count := int64(size / 4)
	tensor := l.NewTensor(ctx, TypeF32, 1, &count)
	if l.TensorAlloc(buffer, tensor, l.BufferBase(buffer)) != StatusSuccess {
		return errors.New("it wraps memory of the host and takes no tensor there")
	}
	read := make([]byte, size)
	l.TensorGet(tensor, Addr(read), 0, size)
	if !bytes.Equal(read, memory) {
		return errors.New("it says that it wraps memory of the host and reads something else there")
	}
	changed := make([]byte, size)
	for i := range changed {
		changed[i] = ^memory[i]
	}
	l.TensorSet(tensor, Addr(changed), 0, size)
	if !bytes.Equal(changed, memory) {
		return errors.New("it says that it wraps memory of the host and writes elsewhere")
	}
	runtime.KeepAlive(read)
	runtime.KeepAlive(changed)
	return nil
}

// Hold takes n bytes of a device's own buffer type and writes all of them, so that they are there and not promised. release
// gives them back.
func (l *Library) Hold(dev uintptr, n int64) (release func(), err error) {
	l.captureErrors()
	buffer := l.BuftAlloc(l.DevBufferType(dev), uintptr(n))
	said := l.captured()
	if buffer == 0 {
		return nil, fmt.Errorf("it allocates no %d MiB: %s", n>>20, reason(said, "it gave no buffer"))
	}
	l.BufferClear(buffer, 0x5a)
	return func() { l.BufferFree(buffer) }, nil
}

// LargestBuffer is the most that one buffer of a device may have, in bytes.
func (l *Library) LargestBuffer(dev uintptr) int64 {
	return int64(min(l.BuftMaxSize(l.DevBufferType(dev)), 1<<62))
}
