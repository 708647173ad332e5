package probe

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/platform/pages"
	"github.com/bmoe/bmoe/platform/process"
)

// ChildHeadroom is the hidden mode in which this program holds memory: its argument is a holdRequest, and it prints a held for
// every step, each one line of JSON.
const ChildHeadroom = "--probe-headroom"

// What a hold leaves alone: so much, and no less than a share of what there is. Where pressure ends a process it must never
// be met; elsewhere the system needs some to work with.
const (
	leftAlone      = 64 << 20
	leftAloneShare = 32
)

// holdSteps is in how many steps memory is held, each no smaller than holdLeast bytes.
const (
	holdSteps = 64
	holdLeast = 16 << 20
)

// holdTime is after how long no further step is begun: a system may be slow to give memory that nobody used since it started.
const holdTime = 90 * time.Second

// lostSlack is what a process's own account may vary by without anything having been taken from it.
const lostSlack = 4 << 20

// holdRequest is how much may be held.
type holdRequest struct {
	Ceiling int64  `json:"ceiling"` // bytes
	Why     string `json:"why"`     // that is the ceiling
}

// held is one step of a hold.
type held struct {
	Kept int64  `json:"kept"`           // bytes held and kept so far
	Over bool   `json:"over,omitempty"` // the hold has ended
	Late bool   `json:"late,omitempty"` // because its time was over
	Why  string `json:"why,omitempty"`  // with this
}

// Holder measures how much memory can be kept, by holding it. Again starts this program again: a process that holds too much
// may be ended for it. nil: no child can be started, and nothing is held.
type Holder struct{ Again Again }

// Headroom holds memory in a child, step by step, until the first of it is taken back or as much is held as this machine
// bears: where pressure ends a process, a little less than is reported available; elsewhere up to what the machine has, less
// a little. All is given back when the child ends. The only error is ctx's.
func (h Holder) Headroom(ctx context.Context, on machine.Memory, tell func(float64)) (machine.Fact[int64], error) {
	r, err := holdable(on)
	if err != nil {
		return machine.Unknown[int64](err.Error()), ctx.Err()
	}
	if h.Again == nil {
		return machine.Unknown[int64]("no other process could be started to hold memory in, and this one must not be ended for it"), ctx.Err()
	}
	tell(0)
	ask, err := json.Marshal(r)
	if err != nil {
		return machine.Unknown[int64](err.Error()), ctx.Err()
	}
	out, ended := h.Again(ctx, ChildHeadroom, string(ask))
	if ctx.Err() != nil {
		return machine.Unknown[int64](ctx.Err().Error()), ctx.Err()
	}
	tell(1)
	last, ok := lastHeld(out)
	total := on.Total.Or(last.Kept)
	switch {
	case !ok && ended != nil:
		return machine.Unknown[int64]("the process that held memory ended: " + ended.Error()), nil
	case !ok:
		return machine.Unknown[int64]("the process that held memory did not say how much"), nil
	case (last.Late || !last.Over && errors.Is(ended, ErrNoAnswer)) && last.Kept < on.Available.Or(0):
		// Less than is reported, and nothing was taken back: that says how slow memory comes here, not how much stays.
		return machine.Unknown[int64](fmt.Sprintf("%d MiB were held and kept when the time was over, and nothing was taken back", last.Kept>>20)), nil
	case ended != nil:
		return machine.Known(min(last.Kept, total), fmt.Sprintf("held by a process that ended when it asked for more: %v", ended)), nil
	case !last.Over:
		return machine.Known(min(last.Kept, total), "held by a process that went away before it was done"), nil
	}
	return machine.Known(min(last.Kept, total), last.Why), nil
}

// holdable is how far a hold may go.
func holdable(on machine.Memory) (holdRequest, error) {
	available, known := on.Available.Get()
	if !known {
		return holdRequest{}, errors.New("what is available is not known, so nothing says how much may be tried: " + on.Available.From())
	}
	spare := func(bytes int64) int64 { return bytes - max(leftAlone, bytes/leftAloneShare) }
	r := holdRequest{spare(available), "as much as is reported available, less a little, since more would end a process here"}
	if p, ok := on.Pressure.Get(); ok && p != machine.Kills {
		r = holdRequest{spare(max(available, on.Total.Or(0))), "all that the machine has, less a little"}
	}
	if r.Ceiling < holdLeast {
		return r, fmt.Errorf("%d MiB are available, too few to hold any", available>>20)
	}
	return r, nil
}

// lastHeld is the last whole line of a child's answer.
func lastHeld(out []byte) (last held, ok bool) {
	for line := range bytes.Lines(out) {
		var h held
		if bytes.HasSuffix(line, []byte("\n")) && json.Unmarshal(line, &h) == nil && h.Kept >= last.Kept {
			last, ok = h, true
		}
	}
	return last, ok
}

// hoard is memory that is held.
type hoard interface {
	grow(bytes int64) error
	inMemory() (int64, error) // bytes of this process that are in RAM and backed by no file
	free()
}

// headroomChild is the side of the child.
func headroomChild(request string, out io.Writer) error {
	var r holdRequest
	if err := json.Unmarshal([]byte(request), &r); err != nil {
		return fmt.Errorf("%s: %w", ChildHeadroom, err)
	}
	if r.Ceiling < 0 || r.Ceiling > 1<<50 {
		return fmt.Errorf("%s: %d bytes are not what a machine has", ChildHeadroom, r.Ceiling)
	}
	process.Expendable() // if the system must end a process for what is held here, it is this one
	return hold(r, &regions{}, json.NewEncoder(out).Encode)
}

// hold grows in steps and says after each what is kept, until the first of it is lost.
func hold(r holdRequest, h hoard, say func(any) error) error {
	defer h.free()
	before, err := h.inMemory()
	if err != nil {
		return fmt.Errorf("what this process holds can't be read: %w", err)
	}
	step := max(r.Ceiling/holdSteps, holdLeast)
	var kept int64
	start := time.Now()
	for kept < r.Ceiling {
		if time.Since(start) > holdTime {
			return say(held{Kept: kept, Over: true, Late: true, Why: fmt.Sprintf("held and kept; no more was tried after %v", holdTime)})
		}
		n := min(step, r.Ceiling-kept)
		if err := h.grow(n); err != nil {
			return say(held{Kept: kept, Over: true, Why: "held and kept; the system gave no more: " + err.Error()})
		}
		now, err := h.inMemory()
		if err != nil {
			return fmt.Errorf("what this process holds can't be read: %w", err)
		}
		if lost := before + kept + n - now; lost > lostSlack {
			return say(held{Kept: kept, Over: true, Why: fmt.Sprintf("held and kept; of %d MiB more the first were taken back", n>>20)})
		}
		kept += n
		if err := say(held{Kept: kept}); err != nil {
			return err
		}
	}
	return say(held{Kept: kept, Over: true, Why: "held and kept; no more was tried than " + r.Why})
}

// regions are a hoard of this process's own memory.
type regions struct{ list []*pages.Region }

// grow takes memory and fills it with bytes that no compressor makes smaller.
func (h *regions) grow(n int64) error {
	r, err := pages.Alloc(int(n))
	if err != nil {
		return err
	}
	h.list = append(h.list, r)
	memory := r.Bytes()
	parts := runtime.GOMAXPROCS(0)
	var all sync.WaitGroup
	for i := range parts {
		part := memory[len(memory)/8*i/parts*8 : len(memory)/8*(i+1)/parts*8]
		seed := uint64(len(h.list)*parts+i)*0x9e3779b97f4a7c15 | 1
		all.Go(func() {
			x := seed
			for len(part) > 0 { // xorshift64
				x ^= x << 13
				x ^= x >> 7
				x ^= x << 17
				binary.NativeEndian.PutUint64(part, x)
				part = part[8:]
			}
		})
	}
	all.Wait()
	return nil
}

func (h *regions) inMemory() (int64, error) {
	u, err := process.Read()
	if err != nil {
		return 0, err
	}
	switch {
	case u.Anonymous == process.Unknown && u.Resident == process.Unknown:
		return 0, errors.New("this system does not say what a process has in memory")
	case u.Anonymous == process.Unknown:
		return u.Resident, nil
	case u.Resident == process.Unknown:
		return u.Anonymous, nil
	}
	return min(u.Anonymous, u.Resident), nil // what is swapped out counts as taken on some systems, and is not resident
}

func (h *regions) free() {
	for _, r := range h.list {
		_ = r.Free() // the process ends
	}
	h.list = nil
}
