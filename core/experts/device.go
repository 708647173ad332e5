package experts

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/bmoe/bmoe/core/llama"
	"github.com/bmoe/bmoe/platform/pages"
)

// DeviceName is what ggml calls the device. It is shown by no list and offered to no fitter.
const DeviceName = "BMOE"

// device is the one ggml device of the process: ggml can register a device and not take it back. Its structs are read by
// C for as long as the process lives, and so are the buffer types of stores. They are Go memory that this variable keeps
// reachable; Go does not move memory, and their fields are addresses, so the garbage collector has nothing to miss.
var device struct {
	sync.Mutex
	lib      *llama.Library
	registry llama.Registry
	device   llama.Device
	guid     [16]byte
	name     []byte
	types    llama.BufferTypeInterface
	buffers  llama.BufferInterface
	backends llama.BackendInterface
	live     [maxStores]*Store
	kept     []*llama.BufferType
	contexts map[uintptr]*llama.Backend
	regions  map[uintptr]*pages.Region // by the address of the buffer's first byte
}

// maxStores bounds the sessions that stream at one time in a process.
const maxStores = 64

// attach registers the device, once, and gives the store a buffer type of its own.
func attach(s *Store) error {
	d := &device
	d.Lock()
	defer d.Unlock()
	if d.lib == nil {
		register(s.lib)
	}
	for i := range d.live {
		if d.live[i] == nil {
			d.live[i] = s
			s.id = i
			s.bufType = &llama.BufferType{Interface: d.types, Device: deviceAddr(), Context: uintptr(i)}
			d.kept = append(d.kept, s.bufType)
			return nil
		}
	}
	return fmt.Errorf("%d sessions stream already, which is as many as there can be", maxStores)
}

func detach(s *Store) {
	device.Lock()
	defer device.Unlock()
	if device.live[s.id] == s {
		device.live[s.id] = nil
	}
}

func deviceAddr() uintptr { return uintptr(unsafe.Pointer(&device.device)) }

// BufferType is where the loader is to put the expert tensors, as llama.Override wants it.
func (s *Store) BufferType() uintptr { return uintptr(unsafe.Pointer(s.bufType)) }

// ours tells a buffer type of this device.
func ours(t *llama.BufferType) bool { return t != nil && t.Device == deviceAddr() }

// register fills the tables of ggml-backend-impl.h. Every callback runs on a thread that called into C from Go, so none
// blocks the Go scheduler. Optional entries that are left zero are the ones ggml checks before it calls.
func register(lib *llama.Library) {
	d := &device
	d.lib = lib
	d.name = llama.CString(DeviceName)
	d.guid[0] = 0x42
	d.contexts = map[uintptr]*llama.Backend{}
	d.regions = map[uintptr]*pages.Region{}

	name := purego.NewCallback(func(uintptr) uintptr { return llama.Addr(d.name) })
	nothing := purego.NewCallback(func(uintptr) uintptr { return 0 })

	d.types = llama.BufferTypeInterface{
		GetName:      name,
		AllocBuffer:  purego.NewCallback(allocBuffer),
		GetAlignment: purego.NewCallback(func(uintptr) uintptr { return 64 }),
		IsHost:       nothing, // so nobody reads through the addresses, which have no access
	}
	d.buffers = llama.BufferInterface{
		Free:         purego.NewCallback(freeBuffer),
		GetBase:      purego.NewCallback(func(b *llama.Buffer) uintptr { return b.Context }),
		SetTensor:    purego.NewCallback(setTensor),
		GetTensor:    purego.NewCallback(func(b, t, data, off, size uintptr) uintptr { return 0 }),
		MemsetTensor: purego.NewCallback(func(b, t, value, off, size uintptr) uintptr { return 0 }),
		Clear:        purego.NewCallback(func(b, value uintptr) uintptr { return 0 }),
	}
	d.backends = llama.BackendInterface{
		GetName:      name,
		Free:         purego.NewCallback(freeBackend),
		GraphCompute: purego.NewCallback(graphCompute),
	}
	d.registry = llama.Registry{APIVersion: llama.APIVersion, Interface: llama.RegistryInterface{
		GetName:     name,
		DeviceCount: purego.NewCallback(func(uintptr) uintptr { return 1 }),
		GetDevice:   purego.NewCallback(func(_, _ uintptr) uintptr { return deviceAddr() }),
	}}
	d.device = llama.Device{
		Registry: uintptr(unsafe.Pointer(&d.registry)),
		Interface: llama.DeviceInterface{
			GetName:        name,
			GetDescription: name,
			GetMemory:      purego.NewCallback(func(_ uintptr, free, total *uintptr) uintptr { *free, *total = 0, 0; return 0 }),
			GetType:        purego.NewCallback(func(uintptr) uintptr { return llama.DeviceAccel }),
			GetProps: purego.NewCallback(func(_ uintptr, p *llama.DeviceProps) uintptr {
				*p = llama.DeviceProps{Name: llama.Addr(d.name), Description: llama.Addr(d.name), Type: llama.DeviceAccel}
				return 0
			}),
			InitBackend: purego.NewCallback(initBackend),
			// Its default buffers are the host's: what it computes lies in ordinary memory, and crossing to it copies nothing.
			GetBufferType: purego.NewCallback(func(uintptr) uintptr { return d.lib.CPUBufferType() }),
			SupportsOp:    purego.NewCallback(supportsOp),
			SupportsBuft:  purego.NewCallback(supportsBuffer),
		},
	}
	lib.Register(uintptr(unsafe.Pointer(&d.registry)))
}

func initBackend(_, _ uintptr) uintptr {
	d := &device
	d.Lock()
	defer d.Unlock()
	b := &llama.Backend{GUID: uintptr(unsafe.Pointer(&d.guid)), Interface: d.backends, Device: deviceAddr()}
	p := uintptr(unsafe.Pointer(b))
	d.contexts[p] = b
	return p
}

func freeBackend(b uintptr) uintptr {
	device.Lock()
	defer device.Unlock()
	delete(device.contexts, b)
	return 0
}

// allocBuffer reserves addresses for the tensors, with no memory behind them and no access.
func allocBuffer(t *llama.BufferType, size uintptr) uintptr {
	d := &device
	r, err := pages.Reserve(max(int(size), pages.Size()))
	if err != nil {
		return 0
	}
	d.Lock()
	d.regions[r.Base()] = r
	d.Unlock()
	return d.lib.BufferInit(uintptr(unsafe.Pointer(t)), d.buffers, r.Base(), size)
}

func freeBuffer(b *llama.Buffer) uintptr {
	d := &device
	d.Lock()
	defer d.Unlock()
	if r := d.regions[b.Context]; r != nil {
		delete(d.regions, b.Context)
		_ = r.Free() // nothing can be done about addresses that do not come back
	}
	return 0
}

// setTensor is where the device learns a tensor: the loader calls it with the tensor's content, which is not read.
func setTensor(b *llama.Buffer, t *llama.Tensor, _, _, _ uintptr) uintptr {
	s := storeOf(b.Type)
	if s == nil {
		return 0
	}
	name := t.NameString()
	for i := range s.tensors {
		e := &s.tensors[i]
		if e.Name == name && int64(e.Experts) == t.Ne[2] && uint64(e.Slice) == t.Nb[2] {
			e.columns = t.Ne[0]
			t.Extra = uintptr(i + 1) // the field is the backend's own, and saves a look-up per node
			s.bound++
			return 0
		}
	}
	s.unknown = name
	return 0
}

func storeOf(t *llama.BufferType) *Store {
	if !ours(t) {
		return nil
	}
	return device.live[t.Context]
}

// supportsOp takes the expert matmul over our tensors, and asks about the tensors themselves.
func supportsOp(_ uintptr, t *llama.Tensor) uintptr {
	switch t.Op {
	case device.lib.OpNone:
		return truth(ours(t.TypeOf()))
	case device.lib.OpMulMatID:
		return truth(t.Src[0] != nil && ours(t.Src[0].TypeOf()))
	}
	return 0
}

func supportsBuffer(_ uintptr, t *llama.BufferType) uintptr {
	return truth(ours(t) || device.lib.BuftIsHost(uintptr(unsafe.Pointer(t))))
}

func truth(b bool) uintptr {
	if b {
		return 1
	}
	return 0
}

// graphCompute runs a graph of expert matmuls. All of its nodes are of one layer's stage and of one store.
func graphCompute(_ uintptr, g *llama.Graph) uintptr {
	nodes := g.NodeList()
	for _, n := range nodes {
		if n.Op == device.lib.OpMulMatID {
			if s := storeOf(n.Src[0].TypeOf()); s != nil {
				return status(s.compute(nodes))
			}
			break
		}
	}
	return status(llama.StatusFailed)
}

func status(v int) uintptr { return uintptr(uint32(int32(v))) }
