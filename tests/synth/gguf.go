package synth

import (
	"encoding/binary"
	"fmt"
	"math"
)

// alignment of tensor data in the file, the format's default.
const alignment = 32

// pair is one metadata entry. The value's Go type says the format's type.
type pair struct {
	key   string
	value any // uint16, uint32, int32, float32, bool, string, []string, []float32, []int32
}

// header returns what stands in a file before its tensors' data: magic, version, metadata and the table of tensors,
// padded to the alignment. The tensors lie one after another behind it, each at the next multiple of the alignment.
func header(meta []pair, tensors []tensor) []byte {
	le := binary.LittleEndian
	b := []byte("GGUF")
	b = le.AppendUint32(b, 3)
	b = le.AppendUint64(b, uint64(len(tensors)))
	b = le.AppendUint64(b, uint64(len(meta)))
	for _, m := range meta {
		b = appendString(b, m.key)
		b = appendValue(b, m.value)
	}
	var at int64
	for _, t := range tensors {
		b = appendString(b, t.name)
		b = le.AppendUint32(b, uint32(len(t.dims)))
		for _, n := range t.dims {
			b = le.AppendUint64(b, uint64(n))
		}
		b = le.AppendUint32(b, uint32(t.kind))
		b = le.AppendUint64(b, uint64(at))
		at += padded(t.size())
	}
	return append(b, make([]byte, padded(int64(len(b)))-int64(len(b)))...)
}

// padded rounds up to the alignment.
func padded(n int64) int64 { return (n + alignment - 1) / alignment * alignment }

func appendString(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
}

// appendValue writes the value's type (enum gguf_type in gguf.h) and the value.
func appendValue(b []byte, value any) []byte {
	le := binary.LittleEndian
	array := func(kind uint32, n int) []byte {
		b = le.AppendUint32(b, 9)
		b = le.AppendUint32(b, kind)
		return le.AppendUint64(b, uint64(n))
	}
	switch v := value.(type) {
	case uint16:
		return le.AppendUint16(le.AppendUint32(b, 2), v)
	case uint32:
		return le.AppendUint32(le.AppendUint32(b, 4), v)
	case int32:
		return le.AppendUint32(le.AppendUint32(b, 5), uint32(v))
	case float32:
		return le.AppendUint32(le.AppendUint32(b, 6), math.Float32bits(v))
	case bool:
		b = le.AppendUint32(b, 7)
		if v {
			return append(b, 1)
		}
		return append(b, 0)
	case string:
		return appendString(le.AppendUint32(b, 8), v)
	case []string:
		b = array(8, len(v))
		for _, s := range v {
			b = appendString(b, s)
		}
	case []float32:
		b = array(6, len(v))
		for _, x := range v {
			b = le.AppendUint32(b, math.Float32bits(x))
		}
	case []int32:
		b = array(5, len(v))
		for _, x := range v {
			b = le.AppendUint32(b, uint32(x))
		}
	default:
		panic(fmt.Sprintf("synth: metadata of type %T", value)) // a mistake in this package, not in a spec
	}
	return b
}
