package cgroup

import (
	"io/fs"
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func system(memberships, mounts string) fstest.MapFS {
	return fstest.MapFS{
		"proc/self/cgroup":    {Data: []byte(memberships)},
		"proc/self/mountinfo": {Data: []byte(mounts)},
	}
}

const (
	v1Memory = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:3 master:1 - cgroup cgroup rw,memory\n"
	v1CPU    = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
	v2       = "31 22 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, controller, memberships, mounts string
		want                                  []Group
	}{
		{"none", "memory", "", "22 1 259:1 / / rw - ext4 /dev/root rw\n", nil},
		{"version 1", "memory", "4:memory:/a/b\n", v1CPU + v1Memory,
			[]Group{{Dir: "sys/fs/cgroup/memory/a/b"}, {Dir: "sys/fs/cgroup/memory/a"}, {Dir: "sys/fs/cgroup/memory"}}},
		{"version 1, several controllers in one", "cpu", "4:memory:/m\n2:cpuacct,cpu:/c\n", v1Memory + v1CPU,
			[]Group{{Dir: "sys/fs/cgroup/cpu,cpuacct/c"}, {Dir: "sys/fs/cgroup/cpu,cpuacct"}}},
		{"a controller's name within another's", "cpu", "2:cpuset:/c\n", "32 31 0:29 / /x rw - cgroup cgroup rw,cpuset\n", nil},
		{"version 1, not mounted", "memory", "4:memory:/a\n", v1CPU, nil},
		{"version 2", "memory", "0::/user.slice/x.scope\n", v2,
			[]Group{{"sys/fs/cgroup/user.slice/x.scope", true}, {"sys/fs/cgroup/user.slice", true}, {"sys/fs/cgroup", true}}},
		{"version 2, a group of its own", "memory", "0::/\n", v2, []Group{{"sys/fs/cgroup", true}}},
		{"both", "memory", "4:memory:/a\n1:name=systemd:/s\n0::/u\n", v1Memory + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			[]Group{{Dir: "sys/fs/cgroup/memory/a"}, {Dir: "sys/fs/cgroup/memory"}, {"sys/fs/cgroup/unified/u", true}, {"sys/fs/cgroup/unified", true}}},
		{"a part of the tree is mounted", "memory", "4:memory:/docker/abc/sub\n", "35 31 0:32 /docker/abc /cg ro - cgroup cgroup rw,memory\n",
			[]Group{{Dir: "cg/sub"}, {Dir: "cg"}}},
		{"another part of the tree is mounted", "memory", "4:memory:/docker/abcd\n", "35 31 0:32 /docker/abc /cg ro - cgroup cgroup rw,memory\n",
			[]Group{{Dir: "cg"}}},
		{"above the namespace's root", "memory", "0::/../other\n", v2, []Group{{"sys/fs/cgroup/other", true}, {"sys/fs/cgroup", true}}},
		{"the mount that has the group is preferred", "memory", "4:memory:/a\n",
			"35 31 0:32 /elsewhere /one rw - cgroup cgroup rw,memory\n36 31 0:32 / /two rw - cgroup cgroup rw,memory\n37 31 0:32 / /three rw - cgroup cgroup rw,memory\n",
			[]Group{{Dir: "two/a"}, {Dir: "two"}}},
		{"a space in the path", "memory", "4:memory:/\n", `35 31 0:32 / /my\040groups rw - cgroup cgroup rw,memory` + "\n", []Group{{Dir: "my groups"}}},
		{"mounted at the root", "memory", "0::/a\n", "31 22 0:28 / / rw - cgroup2 cgroup2 rw\n", []Group{{"a", true}, {".", true}}},
	} {
		got, err := Of(system(c.memberships, c.mounts), c.controller)
		require.NoError(t, err, c.name)
		assert.Equal(t, c.want, got, c.name)
	}
}

func TestSystemWithoutProc(t *testing.T) {
	t.Parallel()
	got, err := Of(fstest.MapFS{}, "memory")
	require.NoError(t, err)
	assert.Empty(t, got)
}

func TestNoMembership(t *testing.T) {
	t.Parallel()
	_, err := Of(system("nonsense\n", v2), "memory")
	require.ErrorContains(t, err, "nonsense")
}

// The groups that this process is in exist; on other systems it is in none.
func TestThisProcess(t *testing.T) {
	t.Parallel()
	root := os.DirFS("/")
	for _, controller := range []string{"memory", "cpu"} {
		groups, err := Of(root, controller)
		require.NoError(t, err)
		for _, g := range groups {
			info, err := fs.Stat(root, g.Dir)
			require.NoError(t, err)
			assert.True(t, info.IsDir())
		}
	}
}

func FuzzOf(f *testing.F) {
	f.Add("4:memory:/a/b\n0::/c\n", v1Memory+v2)
	f.Add("0::/../..\n", "31 22 0:28 /x /\\057 rw - cgroup2 cgroup2 rw\n")
	f.Fuzz(func(t *testing.T, memberships, mounts string) {
		groups, err := Of(system(memberships, mounts), "memory")
		if err != nil {
			assert.Empty(t, groups)
		}
		for _, g := range groups {
			if !fs.ValidPath(g.Dir) {
				t.Errorf("%q cannot be opened", g.Dir)
			}
		}
	})
}
