package pages

import (
	"runtime/debug"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func alloc(t *testing.T, n int) *Region {
	t.Helper()
	r, err := Alloc(n)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Free()) })
	return r
}

func TestContract(t *testing.T) {
	t.Parallel()
	page := Size()
	for _, n := range []int{1, page - 1, page, page + 1, HugeSize - 1, HugeSize, HugeSize + 1, 5*HugeSize + 7} {
		r, err := Alloc(n)
		require.NoError(t, err)
		b := r.Bytes()
		require.Len(t, b, n)
		align := page
		if n >= HugeSize {
			align = HugeSize
		}
		assert.Zero(t, r.Base()%uintptr(align), "%d bytes", n)
		for i := range b {
			if b[i] != 0 {
				t.Fatalf("byte %d of %d is not zero", i, n)
			}
			b[i] = byte(i)
		}
		require.NoError(t, r.Free())
		assert.Nil(t, r.Bytes())
		assert.Zero(t, r.Base())
		require.NoError(t, r.Free(), "twice is no error")
	}
}

func TestSizesThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, -1, int(^uint(0) >> 1)} {
		_, err := Alloc(n)
		require.Error(t, err)
		_, err = Reserve(n)
		require.Error(t, err)
	}
}

func TestReservedSpaceCannotBeTouched(t *testing.T) {
	t.Parallel()
	r, err := Reserve(1 << 40) // far more than the machine has
	require.NoError(t, err)
	defer func() { assert.NoError(t, r.Free()) }()
	assert.Len(t, r.Bytes(), 1<<40)
	assert.Zero(t, r.Base()%HugeSize)
	assert.False(t, r.Huge())
	for _, i := range []int{0, 1 << 20, 1<<40 - 1} {
		assert.Panics(t, func() {
			defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
			r.Bytes()[i] = 1
		})
	}
	for _, err := range []error{r.Lock(0, 1), r.Unlock(0, 1), r.Release(0, Size())} {
		require.ErrorContains(t, err, "reserved")
	}
}

func TestRangesOutsideTheRegion(t *testing.T) {
	t.Parallel()
	r := alloc(t, 10*Size())
	for _, c := range []struct{ off, n int }{{-1, 1}, {0, -1}, {0, 10*Size() + 1}, {10 * Size(), 1}, {Size(), int(^uint(0) >> 1)}} {
		for _, err := range []error{r.Lock(c.off, c.n), r.Unlock(c.off, c.n), r.Release(c.off, c.n)} {
			require.ErrorContains(t, err, "outside")
		}
	}
	for _, err := range []error{r.Lock(0, 0), r.Unlock(10*Size(), 0), r.Release(3, 0)} {
		require.NoError(t, err)
	}
	require.ErrorContains(t, r.Release(1, Size()), "whole pages")
	require.ErrorContains(t, r.Release(0, Size()+1), "whole pages")
}

func TestReleaseLeavesTheRest(t *testing.T) {
	t.Parallel()
	page := Size()
	r := alloc(t, 4*page+5)
	for i := range r.Bytes() {
		r.Bytes()[i] = 7
	}
	require.NoError(t, r.Release(page, page))
	require.NoError(t, r.Release(3*page, page+5), "the tail need not be a whole page")
	for i, b := range r.Bytes() {
		if p := i / page; p == 0 || p == 2 {
			require.EqualValues(t, 7, b)
		} else {
			require.Contains(t, []byte{0, 7}, b)
		}
	}
	r.Bytes()[page] = 9 // still memory
	assert.EqualValues(t, 9, r.Bytes()[page])
}

func TestLock(t *testing.T) {
	t.Parallel()
	r := alloc(t, 4*Size())
	require.NoError(t, r.Lock(Size(), 2*Size()))
	r.Bytes()[Size()] = 1
	require.NoError(t, r.Unlock(Size(), 2*Size()))
	require.NoError(t, r.Release(Size(), 2*Size()))
}

func TestRegionsOfManyGoroutines(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 20 {
				r, err := Alloc(HugeSize + 1)
				if !assert.NoError(t, err) {
					return
				}
				r.Bytes()[HugeSize] = 1
				assert.NoError(t, r.Free())
			}
		})
	}
	all.Wait()
}
