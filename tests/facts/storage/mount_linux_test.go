package storage

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// refused skips a test where the system refuses err's call to this process or lacks what it asks for, and fails it otherwise.
func refused(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	for _, no := range []error{unix.EPERM, unix.EACCES, unix.ENODEV, unix.ENXIO, unix.ENOENT, unix.ENOSYS} {
		if errors.Is(err, no) {
			t.Skipf("the system refuses to %s: %v", what, err)
		}
	}
	require.NoError(t, err, what)
}

// mounted mounts a file system for the length of a test.
func mounted(t *testing.T, source, kind, options string) string {
	t.Helper()
	dir := t.TempDir()
	refused(t, "mount "+kind, unix.Mount(source, dir, kind, 0, options))
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(dir, 0)) })
	return dir
}

// formatted makes a file system with mkfs and its arguments in a file, and mounts it through a loop device of such sectors.
func formatted(t *testing.T, kind string, sector uint32, options string, mkfs ...string) string {
	t.Helper()
	mounted(t, "none", "tmpfs", "size=4096") // where nothing can be mounted, mkfs need not be there either
	image := filepath.Join(t.TempDir(), "image")
	file, err := os.Create(image)
	require.NoError(t, err)
	defer func() { assert.NoError(t, file.Close()) }()
	require.NoError(t, file.Truncate(512<<20)) // xfs takes 300 MiB; what is not written takes no room
	program, err := exec.LookPath("mkfs." + kind)
	require.NoError(t, err, "its package is missing: e2fsprogs, xfsprogs")
	device := looped(t, file, sector)
	out, err := exec.CommandContext(t.Context(), program, slices.Concat(mkfs, []string{device})...).CombinedOutput()
	require.NoError(t, err, string(out))
	return mounted(t, device, kind, options)
}

// looped makes a block device of a file.
func looped(t *testing.T, file *os.File, sector uint32) string {
	t.Helper()
	control, err := unix.Open("/dev/loop-control", unix.O_RDWR|unix.O_CLOEXEC, 0)
	refused(t, "open /dev/loop-control", err)
	defer func() { assert.NoError(t, unix.Close(control)) }()
	for {
		n, err := unix.IoctlRetInt(control, unix.LOOP_CTL_GET_FREE)
		refused(t, "give a loop device", err)
		device := fmt.Sprintf("/dev/loop%d", n)
		loop, err := unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC, 0)
		refused(t, "open "+device, err)
		err = unix.IoctlLoopConfigure(loop, &unix.LoopConfig{Fd: uint32(file.Fd()), Size: sector})
		if err == nil {
			t.Cleanup(func() {
				assert.NoError(t, unix.IoctlSetInt(loop, unix.LOOP_CLR_FD, 0))
				assert.NoError(t, unix.Close(loop))
			})
			return device
		}
		require.NoError(t, unix.Close(loop))
		if !errors.Is(err, unix.EBUSY) { // another process took it
			refused(t, "set up "+device, err)
		}
	}
}

// overlaid shows a folder of a file system through an overlay.
func overlaid(t *testing.T, on string) string {
	t.Helper()
	lower, upper, work := filepath.Join(on, "lower"), filepath.Join(on, "upper"), filepath.Join(on, "work")
	for _, dir := range []string{lower, upper, work} {
		require.NoError(t, os.Mkdir(dir, 0o755))
	}
	return mounted(t, "overlay", "overlay", fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", lower, upper, work))
}
