package synth

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/bmoe/bmoe/platform/storage"
)

// Progress is told how many bytes of the model are written, of how many. The last call has both equal.
type Progress func(written, total int64)

// Write makes the model and returns the paths of its files; the first is the one to open. With several shards, path
// "m.gguf" becomes "m-00001-of-00003.gguf" and so on.
//
// The files appear under their names when all of them are complete, replacing what was there. On an error, and when ctx
// ends, nothing is left behind. It fails before writing when the file system has too little room.
func Write(ctx context.Context, path string, s Spec, progress Progress) ([]string, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	plan := cut(path, s)
	if err := room(filepath.Dir(path), plan, storage.FreeSpace); err != nil {
		return nil, err
	}
	if progress == nil {
		progress = func(int64, int64) {}
	}
	paths := make([]string, len(plan))
	for i, sh := range plan {
		paths[i] = sh.path
	}
	if err := writeAll(ctx, plan, s.Seed, progress); err != nil {
		return nil, fmt.Errorf("write model %s: %w", path, err)
	}
	return paths, nil
}

// Size is how many bytes Write writes for a spec.
func Size(s Spec) (int64, error) {
	if err := s.validate(); err != nil {
		return 0, err
	}
	return total(cut("", s)), nil
}

// Files are the paths that Write makes for a spec. The first is the one to open.
func Files(path string, s Spec) []string {
	if s.Shards < 2 {
		return []string{path}
	}
	paths := make([]string, s.Shards)
	for i := range paths {
		paths[i] = fmt.Sprintf("%s-%05d-of-%05d.gguf", strings.TrimSuffix(path, ".gguf"), i+1, s.Shards)
	}
	return paths
}

// shard is one file to be written.
type shard struct {
	path    string
	header  []byte
	tensors []tensor
}

func (s shard) size() int64 {
	n := int64(len(s.header))
	for _, t := range s.tensors {
		n += padded(t.size())
	}
	return n
}

func total(shards []shard) int64 {
	var n int64
	for _, s := range shards {
		n += s.size()
	}
	return n
}

// cut distributes the tensors over the shards: in order, each about as large.
func cut(path string, s Spec) []shard {
	b := build(s)
	paths := Files(path, s)
	groups := make([][]tensor, len(paths))
	first := 0
	if s.HeadShard {
		first = 1
	}
	var all, done int64
	for _, t := range b.tensors {
		all += t.size()
	}
	for _, t := range b.tensors {
		// The group in which the tensor's middle falls.
		g := first + int((done+t.size()/2)*int64(len(paths)-first)/all)
		groups[g] = append(groups[g], t)
		done += t.size()
	}
	shards := make([]shard, len(paths))
	for i := range shards {
		var meta []pair
		if i == 0 {
			meta = b.meta
		}
		if len(paths) > 1 {
			meta = append(meta[:len(meta):len(meta)],
				pair{"split.no", uint16(i)},
				pair{"split.count", uint16(len(paths))},
				pair{"split.tensors.count", int32(len(b.tensors))})
		}
		shards[i] = shard{path: paths[i], header: header(meta, groups[i]), tensors: groups[i]}
	}
	return shards
}

// room says whether the directory has room for the shards.
func room(dir string, shards []shard, free func(dir string) (int64, error)) error {
	have, err := free(dir)
	if err != nil {
		return fmt.Errorf("free space of %s: %w", dir, err)
	}
	if want := total(shards); want > have {
		return fmt.Errorf("not enough space in %s: the model takes %d MiB, %d MiB are free; free some or choose another directory",
			dir, want>>20, have>>20)
	}
	return nil
}

// writeAll writes every shard under a temporary name and then gives them their own.
func writeAll(ctx context.Context, shards []shard, seed uint64, progress Progress) (err error) {
	var made []string
	defer func() {
		if err == nil {
			return
		}
		for _, path := range made {
			if gone := os.Remove(path); gone != nil && !errors.Is(gone, os.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
	}()
	o := &output{ctx: ctx, buffer: make([]byte, 0, 8<<20), total: total(shards), progress: progress}
	for _, s := range shards {
		f, err := os.CreateTemp(filepath.Dir(s.path), filepath.Base(s.path)+".partial-*")
		if err != nil {
			return err
		}
		made = append(made, f.Name())
		o.file = f
		err = o.shard(s, seed)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	for i, s := range shards {
		if err := os.Chmod(made[i], 0o644); err != nil {
			return err
		}
		if err := os.Rename(made[i], s.path); err != nil {
			return err
		}
		made[i] = s.path
	}
	return nil
}

// output collects what is written into large pieces, counts them and stops when its context ends.
type output struct {
	ctx      context.Context
	file     *os.File
	buffer   []byte
	written  int64
	total    int64
	progress Progress
}

func (o *output) shard(s shard, seed uint64) error {
	if err := o.bytes(s.header); err != nil {
		return err
	}
	for _, t := range s.tensors {
		if err := t.write(o, seed); err != nil {
			return err
		}
		if err := o.bytes(make([]byte, padded(t.size())-t.size())); err != nil {
			return err
		}
	}
	return o.flush()
}

// bytes writes b.
func (o *output) bytes(b []byte) error {
	return o.each(int64(len(b)), 1, func(dst []byte) { b = b[copy(dst, b):] })
}

// each writes n bytes, a multiple of unit, which fill makes piece by piece, each piece a multiple of unit.
func (o *output) each(n, unit int64, fill func(dst []byte)) error {
	for n > 0 {
		at := len(o.buffer)
		piece := min(n, int64(cap(o.buffer)-at)/unit*unit)
		if piece == 0 {
			if at == 0 {
				return fmt.Errorf("a row of %d bytes is larger than the buffer", unit)
			}
			if err := o.flush(); err != nil {
				return err
			}
			continue
		}
		o.buffer = o.buffer[:at+int(piece)]
		fill(o.buffer[at:])
		n -= piece
	}
	return nil
}

func (o *output) flush() error {
	if err := o.ctx.Err(); err != nil {
		return err
	}
	if _, err := o.file.Write(o.buffer); err != nil {
		return err
	}
	o.written += int64(len(o.buffer))
	o.buffer = o.buffer[:0]
	o.progress(o.written, o.total)
	return nil
}
