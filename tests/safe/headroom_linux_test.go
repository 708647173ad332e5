package safe

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/ci/cgroup"
)

var kept = regexp.MustCompile(`held and kept when tried +(\d+) MiB +\((held and kept[^\n]*)\)\n`)

// In a real group with a limit, as much is held as there is room for, and nothing is ended for it.
func TestProbeMemoryInAGroup(t *testing.T) {
	t.Parallel()
	const limit = 1 << 30
	group, err := cgroup.New(cgroup.Root, fmt.Sprintf("bmoe-safe-%d", os.Getpid()), limit)
	if err != nil {
		t.Logf("NOT TRIED: no memory control group can be made here (%v), and without a limit the whole machine would be filled", err)
		return
	}
	t.Cleanup(func() { assert.NoError(t, group.Remove()) })
	c := group.Command(context.Background(), cli, "--probe", "--probe-mem")
	c.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(scratch, "state"))
	c.SysProcAttr = command().SysProcAttr
	o := wait(t, c)
	if !o.orderly(t, done) {
		return
	}
	said := kept.FindStringSubmatch(o.stdout)
	require.NotNil(t, said, o.stdout)
	n := number(t, said[1])
	assert.Less(t, n, limit>>20)
	assert.Greater(t, n, limit>>20*8/10, said[2])
	assert.Zero(t, group.Ended(), "nothing was ended for want of memory")
}
