package foreign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/bmoe/bmoe/ci/code"
	"github.com/bmoe/bmoe/ci/console"
	"github.com/bmoe/bmoe/ci/tools"
)

var qemu = tools.Tool{For: "running arm64 programs", Names: []string{"qemu-aarch64-static", "qemu-aarch64"}, Packages: map[string]string{
	"apt": "qemu-user-static", "dnf": "qemu-user-static", "pacman": "qemu-user-static", "brew": "-", "winget": "-"}}

// ARM64 is Linux on arm64, in QEMU's user mode. Its processor offers everything; the module of 2017's processors is the best
// that takes no instructions which are slow to imitate.
func ARM64(root string) *System {
	has := func(f string) bool { return f == "DOTPROD" || f == "FP16_VECTOR_ARITHMETIC" }
	return &System{Root: root, Platform: code.Platform{OS: "linux", Arch: "arm64"}, has: has, start: startQEMU}
}

// formats is where Linux is told what runs which kind of program. Source: Documentation/admin-guide/binfmt-misc.rst.
const formats = "/proc/sys/fs/binfmt_misc"

// entry has arm64's programs, known by the first twenty bytes of an ELF file, run by %s, which the kernel opens now.
const entry = `:bmoe-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:` +
	`\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:%s:F`

// sysroot is where Debian's cross compiler keeps arm64's C library.
const sysroot = "/usr/aarch64-linux-gnu"

// startQEMU has the kernel hand arm64's programs to QEMU: a program that starts itself again works only so.
func startQEMU(_ context.Context, _ *System) (code.Foreign, func(), error) {
	if err := tools.Need(qemu); err != nil {
		return code.Foreign{}, nil, err
	}
	if !registered() {
		text := fmt.Sprintf(entry, qemu.Path())
		if err := os.WriteFile(filepath.Join(formats, "register"), []byte(text), 0); err != nil {
			return code.Foreign{}, nil, fmt.Errorf("the kernel must be told what runs arm64's programs, which takes root (%w): install qemu-user-static with binfmt-support, or write this line to %s/register: %s", err, formats, text)
		}
		console.Say("told the kernel that %s runs arm64's programs", qemu.Path())
	}
	if _, err := os.Stat(sysroot); errors.Is(err, os.ErrNotExist) {
		return code.Foreign{}, nil, fmt.Errorf("arm64's C library is not in %s: install g++-aarch64-linux-gnu", sysroot)
	}
	return code.Foreign{Env: []string{"QEMU_LD_PREFIX=" + sysroot}}, func() {}, nil
}

// registered looks for an enabled entry for arm64, ours or Debian's.
func registered() bool {
	files, _ := filepath.Glob(filepath.Join(formats, "*aarch64*")) // the pattern is right, which is all that could fail
	for _, f := range files {
		if said, err := os.ReadFile(f); err == nil && strings.HasPrefix(string(said), "enabled") {
			return true
		}
	}
	return false
}
