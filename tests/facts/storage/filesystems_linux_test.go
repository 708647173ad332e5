package storage

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/core/probe"
	"github.com/bmoe/bmoe/platform/pages"
	"github.com/bmoe/bmoe/platform/storage"
	"github.com/bmoe/bmoe/tests/synth"
)

// written writes a model of 20 MB into dir and reads its profile.
func written(t *testing.T, dir string) (string, *model.Profile) {
	t.Helper()
	spec, err := synth.Named("qwen3moe-20m")
	require.NoError(t, err)
	path := filepath.Join(dir, "model.gguf")
	_, err = synth.Write(t.Context(), path, spec, nil)
	require.NoError(t, err)
	m, err := model.Read(path)
	require.NoError(t, err)
	return path, m
}

// On every file system reads past the cache work, in the blocks that the kernel states, or it is said why there are none.
func TestFileSystems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dir   func(*testing.T) string
		align int    // that the drive has; 0: there are no direct reads
		why   string // there are none
	}{
		"ext4":                      {func(t *testing.T) string { return formatted(t, "ext4", 512, "") }, 512, ""},
		"ext4, blocks of 1024":      {func(t *testing.T) string { return formatted(t, "ext4", 512, "", "-b", "1024") }, 512, ""},
		"ext4, sectors of 4096":     {func(t *testing.T) string { return formatted(t, "ext4", 4096, "") }, 4096, ""},
		"ext4, data in the journal": {func(t *testing.T) string { return formatted(t, "ext4", 512, "data=journal") }, 0, "the file system has no direct reads for this file"},
		"xfs":                       {func(t *testing.T) string { return formatted(t, "xfs", 512, "") }, 512, ""},
		"xfs, sectors of 4096":      {func(t *testing.T) string { return formatted(t, "xfs", 4096, "") }, 4096, ""},
		"tmpfs":                     {func(t *testing.T) string { return mounted(t, "none", "tmpfs", "size=64m") }, 0, "the file is on a file system in memory"},
		"overlayfs on ext4":         {func(t *testing.T) string { return overlaid(t, formatted(t, "ext4", 512, "")) }, 512, ""},
		"overlayfs on xfs":          {func(t *testing.T) string { return overlaid(t, formatted(t, "xfs", 512, "")) }, 512, ""},
		"overlayfs on tmpfs":        {func(t *testing.T) string { return overlaid(t, mounted(t, "none", "tmpfs", "size=64m")) }, 0, "the file system answers direct reads from memory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, m := written(t, c.dir(t))
			found, err := probe.Storage(t.Context(), path, m, true, func(float64) {})
			require.NoError(t, err)
			require.NoError(t, (&machine.Profile{Storage: found}).Check())
			assert.NotEmpty(t, found.Curve, found.From)
			assert.True(t, found.Refault.Known(), found.Refault.From())
			same(t, path)

			if c.align == 0 {
				assert.True(t, machine.IsNo(found.Direct))
				assert.Equal(t, c.why, found.Direct.From())
				assert.Contains(t, found.From, "ordinary reads")
				assert.False(t, found.MappingSerialises.Known())
				return
			}
			require.True(t, machine.IsYes(found.Direct), found.Direct.From())
			assert.True(t, found.MappedRate.Known(), found.MappedRate.From())
			var st unix.Statx_t
			require.NoError(t, unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_DIOALIGN, &st))
			if st.Mask&unix.STATX_DIOALIGN == 0 {
				assert.False(t, found.Align.Known(), "no one stated it")
				assert.Contains(t, found.Align.From(), "statx does not state one here")
				return
			}
			assert.EqualValues(t, max(st.Dio_mem_align, st.Dio_offset_align), found.Align.Or(0))
			assert.EqualValues(t, c.align, found.Align.Or(0))
		})
	}
}

// same reads a whole file the way a run does and holds it against what ordinary reads return.
func same(t *testing.T, path string) {
	t.Helper()
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	f, err := storage.Open(path, true)
	require.NoError(t, err)
	defer func() { assert.NoError(t, f.Close()) }()
	region, err := pages.Alloc(len(want) + f.Align())
	require.NoError(t, err)
	defer func() { assert.NoError(t, region.Free()) }()
	n, err := f.ReadAt(region.Bytes()[:(len(want)+f.Align()-1)&^(f.Align()-1)], 0)
	if err != io.EOF {
		require.NoError(t, err)
	}
	assert.True(t, bytes.Equal(want, region.Bytes()[:n]))
}
