package synth

import (
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
)

// stream is a splitmix64 generator: as fast as the weights are written, and the same on every machine and Go version.
type stream uint64

// Uint64 makes stream a rand.Source.
func (s *stream) Uint64() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// newStream is the generator that belongs to a name under a seed. Every tensor has its own, so that its weights do not
// depend on what was written before it.
func newStream(seed uint64, name string) *stream {
	h := fnv.New64a()
	_ = binary.Write(h, binary.LittleEndian, seed) // a hash's Write returns no error
	h.Write([]byte(name))
	s := stream(h.Sum64())
	return &s
}

// normals is a generator of normally distributed values that belongs to a name under a seed.
func normals(seed uint64, name string) *rand.Rand { return rand.New(newStream(seed, name)) }

// read fills b with random bytes.
func (s *stream) read(b []byte) {
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, s.Uint64())
		b = b[8:]
	}
	if len(b) > 0 {
		var last [8]byte
		binary.LittleEndian.PutUint64(last[:], s.Uint64())
		copy(b, last[:])
	}
}
