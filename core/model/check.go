package model

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The pinned llama.cpp's own limits on layers and on experts in a layer, and the last of its ways to make weights of what a
// router gives (llama_expert_gating_func_type).
const (
	maxLayers  = 512
	maxExperts = 1024
	maxGating  = 4
)

var architecture = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// New makes a profile of p's facts: it fills in what tensors' names say and checks that no fact contradicts another. The
// error says which do. p is not changed.
func New(p Profile) (*Profile, error) {
	p.Tensors = slices.Clone(p.Tensors)
	for i, t := range p.Tensors {
		p.Tensors[i].Layer, _ = block(t.Name)
		_, p.Tensors[i].Kind = ExpertKind(t.Name)
	}
	for _, check := range []func() error{p.checkArchitecture, p.checkFigures, p.checkShards, p.checkTensors, p.checkPlaces, p.checkExperts} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return &p, nil
}

func (p *Profile) checkArchitecture() error {
	if !architecture.MatchString(p.Architecture) {
		return fmt.Errorf("no architecture can be called %.40q", p.Architecture)
	}
	return nil
}

func (p *Profile) checkFigures() error {
	if strings.ContainsAny(p.Name, `/\`) {
		return fmt.Errorf("the model's name, %.40q, is a path", p.Name)
	}
	for _, f := range []struct {
		what       string
		value      int
		least, max int
	}{
		{"a context length", p.Context, 1, math.MaxInt32},
		{"an embedding length", p.Embedding, 1, math.MaxInt32},
		{"a vocabulary size", p.Vocab, 1, math.MaxInt32},
		{"a number of layers", p.Layers, 1, maxLayers},
		{"a number of experts", p.ExpertCount, 0, maxExperts},
		{"a number of experts used", p.ExpertUsed, 0, p.ExpertCount},
		{"a number of multi-token-prediction layers", p.MTPLayers, 0, maxLayers},
	} {
		if f.value < f.least || f.value > f.max {
			return fmt.Errorf("%s of %d; possible are %d to %d", f.what, f.value, f.least, f.max)
		}
	}
	if (p.ExpertCount > 0) != (p.ExpertUsed > 0) {
		return fmt.Errorf("%d experts, but %d are used", p.ExpertCount, p.ExpertUsed)
	}
	if p.UsedPerLayer != nil {
		if len(p.UsedPerLayer) != p.Layers {
			return fmt.Errorf("routing widths for %d layers of %d", len(p.UsedPerLayer), p.Layers)
		}
		if slices.Min(p.UsedPerLayer) < 0 || slices.Max(p.UsedPerLayer) != p.ExpertUsed {
			return fmt.Errorf("routing widths per layer from %d to %d, but %d as the largest", slices.Min(p.UsedPerLayer), slices.Max(p.UsedPerLayer), p.ExpertUsed)
		}
	}
	if p.MTPBytes < 0 || p.MTPLayers == 0 && p.MTPBytes > 0 {
		return fmt.Errorf("%d bytes in %d multi-token-prediction layers", p.MTPBytes, p.MTPLayers)
	}
	return nil
}

func (p *Profile) checkShards() error {
	if len(p.Shards) == 0 {
		return errors.New("no file that the model is in")
	}
	seen := make(map[string]bool)
	var total int64
	for _, s := range p.Shards {
		switch {
		case s.Name == "" || s.Name != base(s.Name):
			return fmt.Errorf("file %q is not a plain file name", s.Name)
		case seen[s.Name]:
			return fmt.Errorf("file %q is listed twice", s.Name)
		case s.Bytes < 0 || s.Bytes > math.MaxInt64-total:
			return fmt.Errorf("file %q has a size of %d bytes", s.Name, s.Bytes)
		}
		seen[s.Name] = true
		total += s.Bytes
	}
	return nil
}

func (p *Profile) checkTensors() error {
	if len(p.Tensors) == 0 {
		return errors.New("no tensors")
	}
	seen := make(map[string]bool)
	for _, t := range p.Tensors {
		size, err := t.Type.Size(t.Dims)
		switch {
		case t.Name == "":
			return errors.New("a tensor without a name")
		case seen[t.Name]:
			return fmt.Errorf("tensor %q is listed twice", t.Name)
		case err != nil:
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		case t.Shard < 0 || t.Shard >= len(p.Shards):
			return fmt.Errorf("tensor %q is in file %d of %d", t.Name, t.Shard+1, len(p.Shards))
		case t.Offset < 0 || size > p.Shards[t.Shard].Bytes || t.Offset > p.Shards[t.Shard].Bytes-size:
			return fmt.Errorf("tensor %q, %d bytes at %d, is not within %q, which has %d", t.Name, size, t.Offset, p.Shards[t.Shard].Name, p.Shards[t.Shard].Bytes)
		case size == 0:
			return fmt.Errorf("tensor %q is empty", t.Name)
		case t.Layer >= p.Layers:
			return fmt.Errorf("tensor %q is of a layer that a model of %d layers does not have", t.Name, p.Layers)
		}
		seen[t.Name] = true
	}
	return nil
}

// checkPlaces looks for tensors that overlap, and for more bytes than the files have.
func (p *Profile) checkPlaces() error {
	placed := slices.Clone(p.Tensors)
	slices.SortFunc(placed, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Bytes(), b.Bytes()))
	})
	for i, t := range placed[1:] {
		before := placed[i]
		if before.Shard == t.Shard && before.Offset+before.Bytes() > t.Offset {
			return fmt.Errorf("tensors %q and %q overlap", before.Name, t.Name)
		}
	}
	if loaded := p.DenseBytes() + p.ExpertBytes(); p.MTPBytes > p.FileBytes()-loaded {
		return fmt.Errorf("%d bytes of multi-token prediction beside %d of other tensors, in files of %d", p.MTPBytes, loaded, p.FileBytes())
	}
	return nil
}

func (p *Profile) checkExperts() error {
	layers := make(map[int]map[Kind]bool)
	for t := range p.Experts() {
		if t.Dims[3] != 1 || t.Slices() != p.ExpertCount {
			return fmt.Errorf("tensor %q holds %d experts of a layer's %d", t.Name, t.Dims[2]*t.Dims[3], p.ExpertCount)
		}
		if layers[t.Layer] == nil {
			layers[t.Layer] = make(map[Kind]bool)
		}
		layers[t.Layer][t.Kind] = true
	}
	if p.ExpertCount > 0 && len(layers) == 0 {
		return fmt.Errorf("%d experts, but no tensor that holds them", p.ExpertCount)
	}
	for layer, has := range layers {
		// One of up and the fused tensor, never both; gate only beside up.
		if !has[Down] || has[Up] == has[GateUp] || has[Gate] && !has[Up] {
			return fmt.Errorf("layer %d has an incomplete set of expert tensors", layer)
		}
	}
	return nil
}

// base is a path's last part, whichever system wrote it.
func base(path string) string {
	return filepath.Base(path[strings.LastIndexAny(path, `/\`)+1:])
}
