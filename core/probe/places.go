package probe

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/bmoe/bmoe/core/model"
)

// extent is bytes of a file.
type extent struct{ begin, end int64 }

// experts are the extents of the expert tensors in the shard with most of them, in order.
func experts(m *model.Profile) []extent {
	var all []extent
	shard := m.ExpertShard()
	for t := range m.Experts() {
		if t.Shard == shard {
			all = append(all, extent{t.Offset, t.Offset + t.Bytes()})
		}
	}
	slices.SortFunc(all, func(a, b extent) int { return cmp.Compare(a.begin, b.begin) })
	return all
}

// inside are the whole pages of extents.
func inside(extents []extent, page int64) []extent {
	pages := make([]extent, len(extents))
	for i, e := range extents {
		pages[i] = extent{(e.begin + page - 1) &^ (page - 1), e.end &^ (page - 1)}
	}
	return pages
}

// places are where reads of one size may begin: whole blocks that do not overlap. They are dealt at random, yet always
// in the same order, and none comes again before all have come.
type places struct {
	size   int64 // bytes wanted of a read
	window int64 // the same in whole blocks
	runs   []run
	count  int64
	left   int64           // not dealt yet
	moved  map[int64]int64 // of the places left, those that are no longer where they were
	random *rand.Rand
}

// run is places that follow each other: the offset of the first, and how many came in the runs before.
type run struct{ begin, before int64 }

// spread lays reads of a size over extents, in blocks of align bytes, a power of two. The last block of an extent may
// reach beyond it.
func spread(extents []extent, size, align int64) *places {
	up := func(n int64) int64 { return (n + align - 1) &^ (align - 1) }
	p := &places{size: size, window: up(size), moved: map[int64]int64{}, random: rand.New(rand.NewPCG(1, uint64(size)))}
	var free int64
	for _, e := range extents {
		begin := max(e.begin&^(align-1), free)
		n := (up(e.end) - begin) / p.window
		if n <= 0 {
			continue
		}
		p.runs = append(p.runs, run{begin, p.count})
		p.count += n
		free = begin + n*p.window
	}
	p.left = p.count
	return p
}

// deal returns n offsets, or as many as there are places. It shuffles a deck, of which only what was swapped is kept.
func (p *places) deal(n int64) []int64 {
	n = min(n, p.count)
	if p.left < n {
		p.left = p.count
		clear(p.moved)
	}
	offsets := make([]int64, n)
	for i := range offsets {
		drawn := p.random.Int64N(p.left)
		p.left--
		offsets[i] = p.offset(p.at(drawn))
		p.moved[drawn] = p.at(p.left)
		delete(p.moved, p.left)
	}
	return offsets
}

func (p *places) at(i int64) int64 {
	if now, moved := p.moved[i]; moved {
		return now
	}
	return i
}

func (p *places) offset(i int64) int64 {
	r := p.runs[sort.Search(len(p.runs), func(k int) bool { return p.runs[k].before > i })-1]
	return r.begin + (i-r.before)*p.window
}
