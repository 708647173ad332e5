package foreign

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bmoe/bmoe/backends"
	"github.com/bmoe/bmoe/ci/code"
	"github.com/bmoe/bmoe/ci/console"
	"github.com/bmoe/bmoe/ci/tools"
)

// Debian keeps both programs out of the PATH when the packages for 32 bits are not there.
var (
	wine = tools.Tool{For: "running Windows programs", Names: []string{"wine64", "/usr/lib/wine/wine64", "wine"}, Packages: map[string]string{
		"apt": "wine64", "dnf": "wine-core", "pacman": "wine", "brew": "wine-stable", "winget": "-"}}
	wineserver = tools.Tool{For: "running Windows programs", Names: []string{"wineserver64", "/usr/lib/wine/wineserver64", "wineserver"}, Packages: wine.Packages}
	mingw      = tools.Tool{For: "compiling for Windows", Names: []string{"x86_64-w64-mingw32-gcc-posix", "x86_64-w64-mingw32-gcc"}, Packages: map[string]string{
		"apt": "g++-mingw-w64-x86-64-posix", "dnf": "mingw64-gcc", "pacman": "mingw-w64-gcc", "brew": "mingw-w64", "winget": "-"}}
)

// Windows is Windows for amd64, in Wine.
func Windows(root string) *System {
	return &System{Root: root, Platform: code.Platform{OS: "windows", Arch: "amd64"}, has: backends.Host, start: startWine}
}

// randomness is a library of Windows 10 and later that Go's runtime wants, and that Wine has only since its release 8.9.
//
//go:embed wine/bcryptprimitives.c
var randomness string

// startWine makes a Windows of the checkout's own, if there is none yet, and its server.
func startWine(ctx context.Context, s *System) (code.Foreign, func(), error) {
	if err := tools.Need(wine, wineserver, mingw); err != nil {
		return code.Foreign{}, nil, err
	}
	prefix := filepath.Join(s.folder(), "wine")
	env := []string{
		"WINEPREFIX=" + prefix, "WINESERVER=" + wineserver.Path(),
		"WINEDEBUG=-all", "WINEDLLOVERRIDES=mscoree,mshtml=", // no .NET and no browser: Wine would ask to fetch them
		"DISPLAY=", "WAYLAND_DISPLAY=",
	}
	run := func(program string, args ...string) error {
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Env = append(os.Environ(), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, out)
		}
		return nil
	}
	if err := os.MkdirAll(prefix, 0o755); err != nil {
		return code.Foreign{}, nil, err
	}
	ready := filepath.Join(prefix, "ready")
	if _, err := os.Stat(ready); err != nil {
		console.Say("setting up a Windows for the tests, in %s", prefix)
		if err := errors.Join(run(wine.Path(), "wineboot", "-i"), run(wineserver.Path(), "-w"), addRandomness(ctx, prefix)); err != nil {
			return code.Foreign{}, nil, err
		}
		if err := os.WriteFile(ready, nil, 0o644); err != nil {
			return code.Foreign{}, nil, err
		}
	}
	// One server for all tests: each program would else start its own, which takes a second.
	if err := run(wineserver.Path(), "-p"); err != nil {
		return code.Foreign{}, nil, err
	}
	stop := func() { _ = run(wineserver.Path(), "-k") } // whatever a test left running goes with it
	return code.Foreign{Through: wine.Path(), Env: env}, stop, nil
}

// addRandomness builds the library where Wine does not have it.
func addRandomness(ctx context.Context, prefix string) error {
	to := filepath.Join(prefix, "drive_c", "windows", "system32", "bcryptprimitives.dll")
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	cmd := exec.CommandContext(ctx, mingw.Path(), "-O2", "-shared", "-x", "c", "-o", to, "-", "-ladvapi32")
	cmd.Stdin = strings.NewReader(randomness)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build bcryptprimitives.dll: %w: %s", err, out)
	}
	return nil
}
