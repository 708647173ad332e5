package synth

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/gguf"
)

func TestBlocksAreThoseOfTheFormat(t *testing.T) {
	t.Parallel()
	for kind, f := range formats {
		elements, bytes := gguf.Type(kind).Block()
		assert.EqualValues(t, elements, f.elements, f.name)
		assert.EqualValues(t, bytes, f.bytes, f.name)
		assert.Equal(t, f.name, gguf.Type(kind).String())
	}
}

// tableIQ4 and tableFP4 are the steps of the non-linear types (kvalues_iq4nl and kvalues_fp4 in ggml-common.h).
var (
	tableIQ4 = [16]float64{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}
	tableFP4 = [16]float64{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}
)

func fromHalf(b []byte) float64 {
	h := binary.LittleEndian.Uint16(b)
	value := float64(h&0x3ff) / (1 << 24)
	if exponent := int(h >> 10 & 31); exponent > 0 {
		value = math.Ldexp(1+float64(h&0x3ff)/1024, exponent-15)
	}
	if h&0x8000 != 0 {
		return -value
	}
	return value
}

// scaleK4 is the j-th scale and minimum of Q4_K and Q5_K.
func scaleK4(q []byte, j int) (scale, minimum float64) {
	if j < 4 {
		return float64(q[j] & 63), float64(q[j+4] & 63)
	}
	return float64(q[j+4]&15 | q[j-4]>>6<<4), float64(q[j+4]>>4 | q[j]>>6<<4)
}

// decode are the weights of a block, in any order.
var decode = map[Type]func(b []byte) []float64{
	Q4_0: func(b []byte) (w []float64) {
		for _, q := range b[2:] {
			w = append(w, fromHalf(b)*(float64(q&15)-8), fromHalf(b)*(float64(q>>4)-8))
		}
		return w
	},
	Q8_0: func(b []byte) (w []float64) {
		for _, q := range b[2:] {
			w = append(w, fromHalf(b)*float64(int8(q)))
		}
		return w
	},
	Q4_K: func(b []byte) (w []float64) {
		for i, q := range b[16:] {
			low, lowMin := scaleK4(b[4:], i/32*2)
			high, highMin := scaleK4(b[4:], i/32*2+1)
			w = append(w, fromHalf(b)*low*float64(q&15)-fromHalf(b[2:])*lowMin,
				fromHalf(b)*high*float64(q>>4)-fromHalf(b[2:])*highMin)
		}
		return w
	},
	Q5_K: func(b []byte) (w []float64) {
		for i, q := range b[48:] {
			group := i / 32 * 2
			fifth := b[16+i%32]
			low, lowMin := scaleK4(b[4:], group)
			high, highMin := scaleK4(b[4:], group+1)
			w = append(w, fromHalf(b)*low*float64(q&15|fifth>>group&1<<4)-fromHalf(b[2:])*lowMin,
				fromHalf(b)*high*float64(q>>4|fifth>>(group+1)&1<<4)-fromHalf(b[2:])*highMin)
		}
		return w
	},
	Q6_K: func(b []byte) (w []float64) {
		d := fromHalf(b[208:])
		for i := range 256 {
			half, in := i/128, i%128
			low := b[half*64+in%64] >> (in / 64 * 4) & 15
			high := b[128+half*32+in%32] >> (in / 32 * 2) & 3
			w = append(w, d*float64(int8(b[192+i/16]))*(float64(low|high<<4)-32))
		}
		return w
	},
	IQ4_NL: func(b []byte) (w []float64) {
		for _, q := range b[2:] {
			w = append(w, fromHalf(b)*tableIQ4[q&15], fromHalf(b)*tableIQ4[q>>4])
		}
		return w
	},
	IQ4_XS: func(b []byte) (w []float64) {
		high := binary.LittleEndian.Uint16(b[2:])
		for i, q := range b[8:] {
			group := i / 16
			scale := float64(uint16(b[4+group/2]>>(group%2*4)&15)|high>>(2*group)&3<<4) - 32
			w = append(w, fromHalf(b)*scale*tableIQ4[q&15], fromHalf(b)*scale*tableIQ4[q>>4])
		}
		return w
	},
	MXFP4: func(b []byte) (w []float64) {
		d := math.Ldexp(1, int(b[0])-128)
		for _, q := range b[1:] {
			w = append(w, d*tableFP4[q&15], d*tableFP4[q>>4])
		}
		return w
	},
}

// The weights have the deviation asked for, at the smallest one a large model wants too, and no mean.
func TestRandomWeightsHaveTheirDeviation(t *testing.T) {
	t.Parallel()
	for kind, f := range formats {
		if f.scale == nil {
			continue
		}
		require.Contains(t, decode, kind)
		for _, deviation := range []float64{1, 0.005} {
			blocks := make([]byte, (1<<20)/f.elements*f.bytes)
			kind.randomize(blocks, newStream(1, f.name), deviation)
			var sum, squares, n float64
			for b := blocks; len(b) > 0; b = b[f.bytes:] {
				for _, w := range decode[kind](b[:f.bytes]) {
					sum, squares, n = sum+w, squares+w*w, n+1
				}
			}
			got := math.Sqrt(squares / n)
			tolerance := 0.03
			if kind == MXFP4 {
				tolerance = math.Sqrt2 - 1 // only powers of two
			}
			assert.InDelta(t, deviation, got, deviation*tolerance, "%s", kind)
			assert.InDelta(t, 0, sum/n, deviation*0.02, "%s", kind)
		}
	}
}

func TestHalf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		value float32
		want  uint16
	}{
		{0, 0}, {1, 0x3c00}, {-2, 0xc000}, {1.0 / 3, 0x3555}, {65504, 0x7bff}, {1e6, 0x7bff}, {-1e6, 0xfbff},
		{1.0 / (1 << 14), 0x0400}, {1.0 / (1 << 24), 1}, {1023.0 / (1 << 24), 0x3ff}, {1e-9, 0}, {2047.9 / 2048, 0x3c00},
	} {
		assert.Equalf(t, test.want, half(test.value), "%g", test.value)
	}
}

func TestGivenRowsAreStored(t *testing.T) {
	t.Parallel()
	values := make([]float32, 64)
	for i := range values {
		values[i] = float32(i) - 20.5
	}
	values[63] = 0
	for kind, tolerance := range map[Type]float64{F32: 0, F16: 0.02, Q8_0: 0.2} {
		dst := make([]byte, kind.bytesOf(64))
		formats[kind].encode(dst, values)
		for i, v := range values {
			var got float64
			switch kind {
			case F32:
				got = float64(math.Float32frombits(binary.LittleEndian.Uint32(dst[4*i:])))
			case F16:
				got = fromHalf(dst[2*i:])
			default:
				got = decode[Q8_0](dst[i/32*34 : i/32*34+34])[i%32]
			}
			assert.InDelta(t, float64(v), got, tolerance, "%s %d", kind, i)
		}
	}
}
