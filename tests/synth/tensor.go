package synth

// tensor is one tensor to be written: where its weights come from is either deviation (random) or row (given).
type tensor struct {
	name string
	kind Type
	dims []int64 // fastest first, as in the file

	deviation float64 // standard deviation of random weights
	quiet     int64   // the first rows of every matrix (the first two dims) are zero

	row func(i int64, values []float32) // fills row i
}

// rows is the product of all dims but the first.
func (t tensor) rows() int64 {
	n := int64(1)
	for _, d := range t.dims[1:] {
		n *= d
	}
	return n
}

// size is the tensor's bytes in the file, without padding.
func (t tensor) size() int64 { return t.kind.bytesOf(t.dims[0]) * t.rows() }

// write sends the tensor's data to o.
func (t tensor) write(o *output, seed uint64) error {
	row := t.kind.bytesOf(t.dims[0])
	if t.row != nil {
		values := make([]float32, t.dims[0])
		next := int64(0)
		return o.each(t.rows()*row, row, func(dst []byte) {
			for ; len(dst) > 0; dst = dst[row:] {
				t.row(next, values)
				formats[t.kind].encode(dst[:row], values)
				next++
			}
		})
	}
	random := newStream(seed, t.name)
	matrices := int64(1)
	for _, d := range t.dims[2:] {
		matrices *= d
	}
	for range matrices {
		if err := o.each(t.quiet*row, row, func(dst []byte) { clear(dst) }); err != nil {
			return err
		}
		err := o.each((t.dims[1]-t.quiet)*row, row, func(dst []byte) { t.kind.randomize(dst, random, t.deviation) })
		if err != nil {
			return err
		}
	}
	return nil
}
