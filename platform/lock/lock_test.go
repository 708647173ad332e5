package lock

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/platform/memory"
	"github.com/bmoe/bmoe/platform/pages"
)

// On every system: no more may be locked than there is, an answer says where it came from, and a store that is there gives.
func TestContract(t *testing.T) {
	t.Parallel()
	facts, err := memory.Read()
	require.NoError(t, err)
	for name, ask := range map[string]func() (int64, string, error){"in place": InPlace, "store": StoreTotal} {
		n, from, err := ask()
		if err != nil {
			assert.Zero(t, n, name)
			assert.ErrorContains(t, err, "not known: ", name)
			continue
		}
		assert.GreaterOrEqual(t, n, int64(0), name)
		assert.LessOrEqual(t, n, facts.Total, name)
		assert.NotEmpty(t, from, name)
	}
	yes, from, err := Store()
	if err != nil {
		assert.False(t, yes)
		assert.ErrorContains(t, err, "not known: ")
		return
	}
	assert.NotEmpty(t, from)
	if !yes {
		return
	}
	if total, _, err := StoreTotal(); err == nil && total < int64(4*pages.Size()) {
		return
	}
	b, err := Alloc(3*pages.Size() + 5)
	require.NoError(t, err)
	assert.Len(t, b.Bytes(), 3*pages.Size()+5)
	assert.Zero(t, int(b.Base())%pages.Size())
	for i := range b.Bytes() {
		require.Zero(t, b.Bytes()[i])
		b.Bytes()[i] = 7
	}
	require.NoError(t, b.Free())
	assert.Nil(t, b.Bytes())
	assert.Zero(t, b.Base())
	require.NoError(t, b.Free(), "freeing twice")
}

func TestAllocOfNothing(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, -1} {
		_, err := Alloc(n)
		require.ErrorContains(t, err, "must be positive")
	}
}

func TestWireLimits(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, c := range []struct {
		name                      string
		global, each, wired, want int64
		says                      string
	}{
		{"what the system's limit leaves", 12451 * mib, 12451 * mib, 2083 * mib, 10368 * mib, "2083 MiB are wired"},
		{"more is wired than the limit", 1000 * mib, 1000 * mib, 1200 * mib, 0, "1000 MiB"},
		{"one process's limit", 12451 * mib, 512 * mib, 2083 * mib, 512 * mib, "one process"},
		{"whole pages", 1000*mib + 5000, 2000 * mib, 0, 1000 * mib, "wire limit"},
	} {
		got, from := left(c.global, c.each, c.wired, 16384)
		assert.Equal(t, c.want, got, c.name)
		assert.Contains(t, from, c.says, c.name)
	}
}
