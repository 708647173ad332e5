package history

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func run(n int) Record {
	return Record{When: time.Date(2026, 1, 2, 3, 4, n%60, 0, time.UTC), Model: "m", Bytes: 10, Machine: "2 cores", Tokens: 100 + n, Cache: int64(1000 + n),
		Predicted: 0.1, Took: 0.2, Credited: 0.3, HitRate: 0.4}
}

func TestAddAndRead(t *testing.T) {
	t.Parallel()
	l := In(filepath.Join(t.TempDir(), "not", "there"))
	records, err := l.Records()
	require.NoError(t, err)
	assert.Empty(t, records)
	for n := range 3 {
		require.NoError(t, l.Add(run(n)))
	}
	records, err = l.Records()
	require.NoError(t, err)
	assert.Equal(t, []Record{run(0), run(1), run(2)}, records)
	left, err := os.ReadDir(l.dir)
	require.NoError(t, err)
	assert.Len(t, left, 1, "nothing else is left behind")
}

func TestBounded(t *testing.T) {
	t.Parallel()
	l := In(t.TempDir())
	var text strings.Builder
	for n := range Kept + 20 {
		fmt.Fprintf(&text, `{"model":"m","bytes":1,"tokens":%d,"took":1}`+"\n", n+1)
	}
	text.WriteString("{\"model\":\"of a later version\", \"bytes\":\"many\"}\nnot JSON\n{}\n{\"model\":\"m\",\"bytes\":1,\"tokens\":1,\"took\":1,\"hit_rate\":7}\n")
	require.NoError(t, os.WriteFile(filepath.Join(l.dir, file), []byte(text.String()), 0o600))
	records, err := l.Records()
	require.NoError(t, err)
	assert.Len(t, records, Kept+20, "what is no record is passed over")
	require.NoError(t, l.Add(run(1)))
	records, err = l.Records()
	require.NoError(t, err)
	assert.Len(t, records, Kept)
	assert.Equal(t, run(1), records[Kept-1])
	assert.Equal(t, 22, records[0].Tokens, "the oldest are dropped")
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	l := In(t.TempDir())
	require.NoError(t, os.WriteFile(filepath.Join(l.dir, file), make([]byte, maxBytes+1), 0o600))
	_, err := l.Records()
	assert.ErrorContains(t, err, "too large")
	assert.Error(t, l.Add(run(0)), "what is not ours is not replaced")

	blocked := filepath.Join(t.TempDir(), "a file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	assert.Error(t, In(blocked).Add(run(0)))
	assert.NoError(t, Log{}.Add(run(0)), "the zero Log keeps nothing")
	records, err := Log{}.Records()
	assert.NoError(t, err)
	assert.Empty(t, records)
}

func TestHitRate(t *testing.T) {
	t.Parallel()
	other, short, uncached, latest, narrow, whole := run(1), run(2), run(3), run(4), run(5), run(6)
	other.Bytes, short.Tokens, uncached.Cache, latest.HitRate, narrow.Used, whole.Cache = 11, 15, 0, 0.8, 2, 2000
	records := []Record{run(0), latest, other, short, uncached, narrow, whole}
	cache, rate, runs := HitRate(records, "m", 10, 0, 2000)
	assert.Equal(t, int64(1004), cache)
	assert.Equal(t, 0.8, rate)
	assert.Equal(t, 2, runs)
	cache, _, runs = HitRate(records, "m", 10, 2, 2000)
	assert.Equal(t, int64(1005), cache, "another routing width is another matter")
	assert.Equal(t, 1, runs)
	_, _, runs = HitRate(nil, "m", 10, 0, 2000)
	assert.Zero(t, runs)
}

// What the latest run was granted is known; runs that asked for nothing say nothing of it.
func TestGranted(t *testing.T) {
	t.Parallel()
	locked := func(cache, refused, dense int64) Record {
		r := run(1)
		r.CacheLocked, r.CacheRefused, r.DenseLocked = cache, refused, dense
		return r
	}
	assert.Equal(t, Locks{}, Granted(nil))
	assert.Equal(t, Locks{}, Granted([]Record{run(1)}))
	assert.Equal(t, Locks{Asked: true, Refused: true, Cache: 100, Dense: 7}, Granted([]Record{locked(100, 50, 7), run(2)}))
	assert.Equal(t, Locks{Asked: true, Cache: 200}, Granted([]Record{locked(100, 50, 7), locked(200, 0, 0)}), "the latest counts")
	assert.Equal(t, Locks{Asked: true, Refused: true}, Granted([]Record{locked(0, 50, 0)}))
}
