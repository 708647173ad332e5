package synth

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Type is a tensor type of ggml, by the number the file format gives it (enum ggml_type in ggml.h).
type Type uint32

// The types that the generator can write. Layouts are those of ggml-common.h.
const (
	F32    Type = 0
	F16    Type = 1
	Q4_0   Type = 2
	Q8_0   Type = 8
	Q4_K   Type = 12
	Q5_K   Type = 13
	Q6_K   Type = 14
	IQ4_NL Type = 20
	IQ4_XS Type = 23
	MXFP4  Type = 39
)

// format says how a type lays out its blocks and how blocks of random weights are made.
type format struct {
	name     string
	elements int64 // of a block
	bytes    int64 // of a block

	// spread is the standard deviation of a block of random bytes whose scale is 1.
	spread float64
	// scale returns what makes weights of a block of random bytes: it writes the block's scales, so that the weights have
	// the scale d.
	scale func(d float64) func(block []byte)
	// encode stores values in dst, one row. For types whose encode is nil, weights are only made at random.
	encode func(dst []byte, values []float32)
}

var formats = map[Type]format{
	F32: {name: "f32", elements: 1, bytes: 4, encode: encodeF32},
	F16: {name: "f16", elements: 1, bytes: 2, encode: encodeF16},

	// {half d; 32 nibbles}, weight d*(q-8): uniform over 16 steps.
	Q4_0: {name: "q4_0", elements: 32, bytes: 18, spread: 4.61, scale: scaleHalf},
	// {half d; int8 q[32]}, weight d*q: uniform over 256 steps.
	Q8_0: {name: "q8_0", elements: 32, bytes: 34, spread: 73.9, scale: scaleHalf, encode: encodeQ8},
	// {half d, dmin; 8 scales and 8 minimums of 6 bits in 12 bytes; 256 nibbles}, weight d*scale*q - dmin*min. Scale and
	// minimum are 32 throughout and dmin is 7.5*d, so that weights are centred on zero.
	Q4_K: {name: "q4_K", elements: 256, bytes: 144, spread: 32 * 4.61, scale: scaleK(7.5)},
	// As Q4_K with a fifth bit: 32 steps.
	Q5_K: {name: "q5_K", elements: 256, bytes: 176, spread: 32 * 9.23, scale: scaleK(15.5)},
	// {low nibbles[128]; high bit pairs[64]; int8 scale[16]; half d}, weight d*scale*(q-32): 64 steps, scale 32.
	Q6_K: {name: "q6_K", elements: 256, bytes: 210, spread: 32 * 18.5, scale: scaleQ6K},
	// {half d; 32 nibbles}, weight d*table[q]; the table has a standard deviation of 67.5.
	IQ4_NL: {name: "iq4_nl", elements: 32, bytes: 18, spread: 67.5, scale: scaleHalf},
	// {half d; 8 scales of 6 bits in 6 bytes; 256 nibbles}, weight d*(scale-32)*table[q], the scales left random.
	IQ4_XS: {name: "iq4_xs", elements: 256, bytes: 136, spread: 18.5 * 67.5, scale: scaleHalf},
	// {exponent; 32 nibbles}, weight 2^(exponent-128)*table[q]; the table, FP4 values doubled, has a standard deviation
	// of 5.85. Only powers of two can be a scale: the nearest is taken.
	MXFP4: {name: "mxfp4", elements: 32, bytes: 17, spread: 5.85, scale: scaleMXFP4},
}

func (t Type) String() string {
	if f, ok := formats[t]; ok {
		return f.name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// bytesOf is the size of n elements, a multiple of the type's block.
func (t Type) bytesOf(n int64) int64 {
	f := formats[t]
	return n / f.elements * f.bytes
}

// randomize fills dst, whole blocks, with random weights of the given standard deviation.
func (t Type) randomize(dst []byte, s *stream, deviation float64) {
	f := formats[t]
	s.read(dst)
	scale := f.scale(deviation / f.spread)
	for block := dst; len(block) > 0; block = block[f.bytes:] {
		scale(block)
	}
}

// scaleHalf writes the scale as the half at the start of the block.
func scaleHalf(d float64) func([]byte) {
	h := half(float32(d))
	return func(block []byte) { putSigned(block, h) }
}

// putSigned writes a half with the sign that the random bytes at its place have. The range of most types is lopsided
// (Q4_0: -8 to 7 steps); with one sign throughout, all weights would have a common mean, and a wide matrix would blow up
// what its input has in common.
func putSigned(dst []byte, h uint16) {
	binary.LittleEndian.PutUint16(dst, h|binary.LittleEndian.Uint16(dst)&0x8000)
}

// scaleK writes Q4_K's and Q5_K's scales; centre is the middle of the range of q.
func scaleK(centre float64) func(float64) func([]byte) {
	return func(d float64) func([]byte) {
		scale, minimum := half(float32(d)), half(float32(d*centre))
		return func(block []byte) {
			binary.LittleEndian.PutUint16(block, scale)
			binary.LittleEndian.PutUint16(block[2:], minimum)
			// Scales 0 to 3 and minimums 0 to 3 are the low six bits of bytes 0 to 7, whose top bits, with the nibbles of
			// bytes 8 to 11, are scales and minimums 4 to 7. 32 everywhere:
			binary.LittleEndian.PutUint64(block[4:], 0xa0a0a0a0a0a0a0a0)
			binary.LittleEndian.PutUint32(block[12:], 0)
		}
	}
}

func scaleQ6K(d float64) func([]byte) {
	h := half(float32(d))
	return func(block []byte) {
		binary.LittleEndian.PutUint64(block[192:], 0x2020202020202020)
		binary.LittleEndian.PutUint64(block[200:], 0x2020202020202020)
		putSigned(block[208:], h)
	}
}

func scaleMXFP4(d float64) func([]byte) {
	exponent := byte(min(max(128+math.Round(math.Log2(d)), 1), 254))
	return func(block []byte) { block[0] = exponent }
}

func encodeF32(dst []byte, values []float32) {
	for i, v := range values {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
	}
}

func encodeF16(dst []byte, values []float32) {
	for i, v := range values {
		binary.LittleEndian.PutUint16(dst[2*i:], half(v))
	}
}

func encodeQ8(dst []byte, values []float32) {
	for ; len(values) > 0; dst, values = dst[34:], values[32:] {
		var top float64
		for _, v := range values[:32] {
			top = max(top, math.Abs(float64(v)))
		}
		d := top / 127
		binary.LittleEndian.PutUint16(dst, half(float32(d)))
		for i, v := range values[:32] {
			q := 0.0
			if d > 0 {
				q = math.Round(float64(v) / d)
			}
			dst[2+i] = byte(int8(q))
		}
	}
}

// half rounds to the nearest IEEE half. What is above its largest number becomes that.
func half(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b >> 16 & 0x8000)
	a := math.Abs(float64(f))
	const smallest = 1.0 / (1 << 14) // of the normal numbers; below it the step stays 2^-24
	if a < smallest {
		return sign | uint16(math.RoundToEven(a*(1<<24)))
	}
	fraction, exponent := math.Frexp(a) // a = fraction * 2^exponent, fraction in [0.5, 1)
	h := uint32(exponent-1+15)<<10 + uint32(math.RoundToEven((fraction*2-1)*1024))
	return sign | uint16(min(h, 0x7bff))
}
