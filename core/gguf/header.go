package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
)

// Bounds on what a header may make this reader hold. Real headers stay far below: a vocabulary of 250 000 tokens with its
// merges takes about 12 MB, the largest models have some thousands of tensors.
const (
	maxHeader  = 256 << 20 // bytes
	maxKeys    = 1 << 16
	maxTensors = 1 << 17
	maxName    = 63 // bytes of a tensor's name: GGML_MAX_NAME less its terminating zero
	maxKey     = 1<<16 - 1
)

// header is one file's own metadata and tensor table. The tensors' offsets count from the data section.
type header struct {
	meta      map[string]value
	tensors   []Tensor
	dataStart int64
}

// cursor reads a header from a file, never past its end and never more than maxHeader bytes.
type cursor struct {
	r    *bufio.Reader
	at   int64 // bytes read so far
	size int64 // bytes in the file
}

// parseHeader reads a header from the start of r, a file of size bytes. Its errors say what is wrong, not in which file.
func parseHeader(r io.Reader, size int64) (*header, error) {
	c := &cursor{r: bufio.NewReaderSize(r, 1<<16), size: size}
	keys, tensors, err := c.counts()
	if err != nil {
		return nil, err
	}
	h := &header{meta: make(map[string]value)}
	for i := range keys {
		if err := c.pair(h.meta); err != nil {
			return nil, fmt.Errorf("metadata pair %d of %d: %w", i+1, keys, err)
		}
	}
	align, err := alignment(h.meta)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	var end int64 // of the tensors so far, from the data section
	for i := range tensors {
		t, err := c.tensor()
		if err != nil {
			return nil, fmt.Errorf("tensor %d of %d: %w", i+1, tensors, err)
		}
		if seen[t.Name] {
			return nil, fmt.Errorf("two tensors are called %q", t.Name)
		}
		seen[t.Name] = true
		// llama.cpp accepts only tensors that follow each other as the table lists them, and so no overlap and no gap.
		if t.Offset != end {
			return nil, fmt.Errorf("tensor %q is said to begin at byte %d of the data, but the tensors before it end at %d", t.Name, t.Offset, end)
		}
		if t.Size > math.MaxInt64/2-end-align {
			return nil, fmt.Errorf("tensor %q brings the data to more bytes than a file can have", t.Name)
		}
		end = pad(end+t.Size, align)
		h.tensors = append(h.tensors, t)
	}
	h.dataStart = c.at
	if len(h.tensors) > 0 {
		h.dataStart = pad(c.at, align)
	}
	return h, nil
}

// counts reads what a file begins with: magic, version, number of tensors and of metadata pairs.
func (c *cursor) counts() (keys, tensors uint64, err error) {
	magic, err := c.bytes(4)
	switch {
	case errors.Is(err, errEnd):
		return 0, 0, fmt.Errorf("not a GGUF file: it has only %d bytes", c.size)
	case err != nil:
		return 0, 0, err
	case string(magic) != "GGUF":
		return 0, 0, fmt.Errorf("not a GGUF file: it begins with %q", magic)
	}
	version, err := c.uint32()
	switch {
	case err != nil:
		return 0, 0, err
	case version&0xffff == 0:
		return 0, 0, errors.New("written for a big-endian machine, which is not supported")
	case version != 2 && version != 3:
		return 0, 0, fmt.Errorf("GGUF version %d; versions 2 and 3 are supported", version)
	}
	if tensors, err = c.uint64(); err != nil {
		return 0, 0, err
	}
	if keys, err = c.uint64(); err != nil {
		return 0, 0, err
	}
	if tensors > maxTensors {
		return 0, 0, fmt.Errorf("%d tensors; at most %d are accepted", tensors, maxTensors)
	}
	if keys > maxKeys {
		return 0, 0, fmt.Errorf("%d metadata pairs; at most %d are accepted", keys, maxKeys)
	}
	return keys, tensors, nil
}

// pair reads one key and its value into meta.
func (c *cursor) pair(meta map[string]value) error {
	key, err := c.text(maxKey)
	if err != nil {
		return err
	}
	if key == "" {
		return errors.New("the key is empty")
	}
	if _, twice := meta[key]; twice {
		return fmt.Errorf("key %.80q appears twice", key)
	}
	v, err := c.value()
	if err != nil {
		return fmt.Errorf("value of %.80q: %w", key, err)
	}
	meta[key] = v
	return nil
}

func (c *cursor) value() (value, error) {
	k, err := c.uint32()
	if err != nil {
		return value{}, err
	}
	v := value{kind: kind(k), n: 1}
	if v.kind == kindArray {
		if k, err = c.uint32(); err != nil {
			return value{}, err
		}
		n, err := c.uint64()
		if err != nil {
			return value{}, err
		}
		if n > maxHeader {
			return value{}, fmt.Errorf("an array of %d elements; at most %d are accepted", n, maxHeader)
		}
		v = value{kind: kind(k), array: true, n: int64(n)}
	}
	switch {
	case v.kind >= kindCount:
		return value{}, fmt.Errorf("unknown value type %d", k)
	case v.kind == kindArray:
		return value{}, errors.New("an array of arrays, which llama.cpp does not read")
	case v.kind == kindString:
		v.raw, err = c.texts(v.n)
	default:
		v.raw, err = c.bytes(v.n * v.kind.size())
	}
	return v, err
}

// tensor reads one entry of the tensor table.
func (c *cursor) tensor() (Tensor, error) {
	t := Tensor{Dims: [4]int64{1, 1, 1, 1}}
	var err error
	if t.Name, err = c.text(maxName); err != nil {
		return t, err
	}
	n, err := c.uint32()
	if err != nil {
		return t, err
	}
	if n > uint32(len(t.Dims)) {
		return t, fmt.Errorf("%q has %d dimensions; at most %d are possible", t.Name, n, len(t.Dims))
	}
	for i := range n {
		d, err := c.uint64()
		if err != nil {
			return t, err
		}
		t.Dims[i] = int64(d) // Size refuses what became negative
	}
	code, err := c.uint32()
	if err != nil {
		return t, err
	}
	t.Type = Type(code)
	if t.Size, err = t.Type.Size(t.Dims); err != nil {
		return t, fmt.Errorf("%q: %w", t.Name, err)
	}
	offset, err := c.uint64()
	if err != nil {
		return t, err
	}
	if offset > math.MaxInt64 {
		return t, fmt.Errorf("%q has the offset %d", t.Name, offset)
	}
	t.Offset = int64(offset)
	return t, nil
}

// alignment is what the data section and every tensor in it begin at a multiple of.
func alignment(meta map[string]value) (int64, error) {
	v, ok := meta["general.alignment"]
	if !ok {
		return 32, nil
	}
	if v.array || v.kind != kindUint32 {
		return 0, errors.New("general.alignment is not an unsigned 32-bit number")
	}
	n, _ := v.integer(0)
	if bits.OnesCount64(uint64(n)) != 1 {
		return 0, fmt.Errorf("general.alignment is %d, not a power of two", n)
	}
	return n, nil
}

func pad(n, align int64) int64 { return (n + align - 1) &^ (align - 1) }

// errEnd is a header that goes on where the file does not.
var errEnd = errors.New("the file ends inside its header: it was cut short or is still being downloaded")

// bytes reads n bytes.
func (c *cursor) bytes(n int64) ([]byte, error) { return c.extend(nil, n) }

// extend reads n bytes onto the end of b. It allocates only for bytes that the file has.
func (c *cursor) extend(b []byte, n int64) ([]byte, error) {
	if n > c.size-c.at {
		return nil, errEnd
	}
	if n > maxHeader-c.at {
		return nil, fmt.Errorf("the header is larger than the %d MiB that are accepted", maxHeader>>20)
	}
	start := len(b)
	b = slices.Grow(b, int(n))[:start+int(n)]
	if _, err := io.ReadFull(c.r, b[start:]); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, errEnd
		}
		return nil, err
	}
	c.at += n
	return b, nil
}

func (c *cursor) uint32() (uint32, error) {
	b, err := c.bytes(4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (c *cursor) uint64() (uint64, error) {
	b, err := c.bytes(8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// text reads a string of at most limit bytes.
func (c *cursor) text(limit uint64) (string, error) {
	n, err := c.uint64()
	if err != nil {
		return "", err
	}
	if n > limit {
		return "", fmt.Errorf("a name of %d bytes; at most %d are accepted", n, limit)
	}
	b, err := c.bytes(int64(n))
	return string(b), err
}

// texts reads n strings, each left behind its length.
func (c *cursor) texts(n int64) ([]byte, error) {
	if n > (c.size-c.at)/8 {
		return nil, errEnd
	}
	var raw []byte
	for range n {
		var err error
		if raw, err = c.extend(raw, 8); err != nil {
			return nil, err
		}
		length := binary.LittleEndian.Uint64(raw[len(raw)-8:])
		if length > maxHeader {
			return nil, fmt.Errorf("a string of %d bytes; at most %d are accepted", length, maxHeader)
		}
		if raw, err = c.extend(raw, int64(length)); err != nil {
			return nil, err
		}
	}
	return raw, nil
}
