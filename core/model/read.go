package model

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/bmoe/bmoe/core/gguf"
)

// Read makes the profile of a model file, or of a model's first shard. No tensor data is read.
func Read(path string) (*Profile, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	return FromGGUF(f)
}

// FromGGUF makes the profile of an open model. Errors name its first shard.
func FromGGUF(f *gguf.File) (*Profile, error) {
	p, err := fromGGUF(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Shards[0].Path, err)
	}
	return p, nil
}

func fromGGUF(f *gguf.File) (*Profile, error) {
	var p Profile
	var ok bool
	if p.Architecture, ok = f.Meta.String("general.architecture"); !ok {
		return nil, errors.New("not a language model: its metadata names no architecture")
	}
	if err := p.checkArchitecture(); err != nil {
		return nil, err // before it is part of any message
	}
	m := figures{f.Meta, p.Architecture, nil}
	p.Context = m.required("context_length")
	p.Embedding = m.required("embedding_length")
	blocks := min(m.required("block_count"), maxLayers+1) // more is refused, whatever it is
	p.ExpertCount = m.optional("expert_count")
	mtp := m.optional("nextn_predict_layers")
	used := m.perLayer("expert_used_count", blocks)
	if m.err == nil {
		m.err = m.acceptable(blocks, mtp, p.ExpertCount, used)
	}
	if m.err != nil {
		return nil, m.err
	}

	// llama.cpp never loads the trailing blocks that the metadata declares for multi-token prediction; where their own
	// tensors are missing, the declaration is void, and a file of nothing else is a drafting model.
	p.Layers = blocks - mtp
	if _, there := f.Tensor(fmt.Sprintf("blk.%d.nextn.eh_proj.weight", p.Layers)); !there || p.Layers <= 0 {
		p.Layers, mtp = blocks, 0
	}
	p.MTPLayers = mtp

	p.Name = name(f)
	for _, s := range f.Shards {
		p.Shards = append(p.Shards, Shard{base(s.Path), s.Size})
	}
	streams := false
	for _, t := range f.Tensors {
		// Of a file that is a header only, the size that it would have.
		p.Shards[t.Shard].Bytes = max(p.Shards[t.Shard].Bytes, t.Offset+t.Size)
		if layer, _ := block(t.Name); mtp > 0 && layer >= p.Layers && layer < blocks {
			p.MTPBytes += t.Size
			continue
		}
		_, kind := ExpertKind(t.Name)
		streams = streams || kind != NotExpert
		p.Tensors = append(p.Tensors, Tensor{Name: t.Name, Type: t.Type, Dims: t.Dims, Shard: t.Shard, Offset: t.Offset})
	}
	if !streams {
		p.ExpertCount = 0 // some dense models say 1
	} else {
		used = used[:p.Layers]
		p.ExpertUsed = slices.Max(used)
		if slices.Min(used) != p.ExpertUsed {
			p.UsedPerLayer = used
		}
	}
	p.Vocab = vocabulary(f)
	return New(p)
}

// vocabulary is the number of tokens, or 0 if the file does not say.
func vocabulary(f *gguf.File) int {
	if t, ok := f.Tensor("token_embd.weight"); ok {
		return int(min(t.Dims[1], math.MaxInt))
	}
	n, _ := f.Meta.Len("tokenizer.ggml.tokens")
	return int(n)
}

// name is what the model calls itself, else its file's name. Some converters put a path there; a profile holds none.
func name(f *gguf.File) string {
	n, _ := f.Meta.String("general.name")
	n = base(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, n))
	if n == "." {
		return strings.TrimSuffix(base(f.Shards[0].Path), ".gguf")
	}
	return n
}

// figures reads an architecture's numbers and keeps the first error.
type figures struct {
	meta         gguf.Metadata
	architecture string
	err          error
}

func (m *figures) optional(key string) int {
	key = m.architecture + "." + key
	if _, there := m.meta.Len(key); !there {
		return 0
	}
	n, ok := m.meta.Uint(key)
	if !ok || n > math.MaxInt32 {
		m.fail("its metadata gives no usable number for %s", key)
	}
	return int(min(n, math.MaxInt32))
}

func (m *figures) required(key string) int {
	if _, there := m.meta.Len(m.architecture + "." + key); !there {
		m.fail("not a language model: its metadata has no %s.%s", m.architecture, key)
	}
	return m.optional(key)
}

// acceptable refuses the figures that llama.cpp answers with the end of the process instead of an error.
func (m *figures) acceptable(blocks, mtp, experts int, used []int) error {
	groups, groupsUsed := m.optional("expert_group_count"), m.optional("expert_group_used_count")
	gating := m.optional("expert_gating_func")
	if m.err != nil {
		return m.err
	}
	if blocks < 1 || blocks > maxLayers {
		return fmt.Errorf("its metadata gives a block count that is not within 1 to %d", maxLayers)
	}
	if mtp > blocks {
		return fmt.Errorf("its metadata says that %d of its %d blocks are for multi-token prediction", mtp, blocks)
	}
	if experts == 1 && strings.HasPrefix(m.architecture, "hunyuan") {
		return nil // a dense model
	}
	most := slices.Max(used)
	if experts > maxExperts || most > experts || (most > 0) != (experts > 0) {
		return fmt.Errorf("its metadata says that a token uses %d of a layer's %d experts", most, experts)
	}
	if groups > 0 && groups >= experts || groups > 1 && (experts%groups != 0 || groupsUsed < 1 || groupsUsed >= groups) {
		return fmt.Errorf("its metadata says that a token uses %d of %d groups of a layer's %d experts", groupsUsed, groups, experts)
	}
	if gating > maxGating {
		return fmt.Errorf("its metadata names the unknown way %d of weighing experts", gating)
	}
	scaling, said := m.meta.String(m.architecture + ".rope.scaling.type")
	if said && !slices.Contains([]string{"none", "linear", "yarn", "longrope"}, scaling) {
		return fmt.Errorf("its metadata names the unknown rope scaling %.40q", scaling)
	}
	return nil
}

// perLayer reads one number for all layers, or an array of one for each.
func (m *figures) perLayer(key string, layers int) []int {
	full := m.architecture + "." + key
	if m.meta.Array(full) {
		if n, _ := m.meta.Len(full); n != int64(layers) {
			m.fail("its metadata gives %s for %d layers of %d", full, n, layers)
			return nil
		}
		numbers, ok := m.meta.Ints(full)
		if !ok || len(numbers) > 0 && (slices.Min(numbers) < 0 || slices.Max(numbers) > math.MaxInt32) {
			m.fail("its metadata gives no usable numbers for %s", full)
			return nil
		}
		each := make([]int, layers)
		for i, n := range numbers {
			each[i] = int(n)
		}
		return each
	}
	return slices.Repeat([]int{m.optional(key)}, layers)
}

// fail keeps the first error.
func (m *figures) fail(format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf(format, args...)
	}
}
