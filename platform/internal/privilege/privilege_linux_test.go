package privilege

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLocksFreely(t *testing.T) {
	t.Parallel()
	const own, nested = "         0          0 4294967295\n", "0 1000 1\n"
	for _, c := range []struct {
		name, status, identity string
		want                   bool
		says                   string
	}{
		{"root", "Name:\tx\nCapEff:\t000001ffffffffff\n", own, true, ""},
		{"only that one", "CapEff:\t0000000000004000\n", own, true, ""},
		{"all but that one", "CapEff:\t000001ffffffbfff\n", own, false, ""},
		{"a namespace of its own", "CapEff:\t000001ffffffffff\n", nested, false, ""},
		{"no namespaces", "CapEff:\t000001ffffffffff\n", "", true, ""},
		{"not stated", "Name:\tx\n", own, false, "CapEff"},
		{"nonsense", "CapEff:\tall\n", own, false, "CapEff"},
	} {
		tree := fstest.MapFS{"proc/self/status": {Data: []byte(c.status)}}
		if c.identity != "" {
			tree["proc/self/uid_map"] = &fstest.MapFile{Data: []byte(c.identity)}
		}
		got, err := LocksFreely(tree)
		if c.says != "" {
			require.ErrorContains(t, err, c.says, c.name)
			continue
		}
		require.NoError(t, err, c.name)
		assert.Equal(t, c.want, got, c.name)
	}
	_, err := LocksFreely(fstest.MapFS{})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = LocksFreely(os.DirFS("/"))
	require.NoError(t, err)
}
