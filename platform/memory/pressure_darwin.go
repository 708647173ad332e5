package memory

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/bmoe/bmoe/platform/internal/mach"
)

// The bits of vm.compressor_mode (osfmk/vm/vm_pageout.h).
const (
	compressorAlone        = 0x2
	compressorThenSwap     = 0x4
	freezeCompressor       = 0x10
	freezeCompressorToSwap = 0x20
)

func mode() (uint32, error) {
	n, err := unix.SysctlUint32("vm.compressor_mode")
	if err != nil {
		return 0, fmt.Errorf("vm.compressor_mode: %w", err)
	}
	return n, nil
}

func compresses() (bool, string, error) {
	n, err := mode()
	if err != nil {
		return false, "", err
	}
	const any = compressorAlone | compressorThenSwap | freezeCompressor | freezeCompressorToSwap
	return n&any != 0, fmt.Sprintf("vm.compressor_mode is %d", n), nil
}

// swaps says yes where a swap file is in use, or the compressor makes one when it needs it.
func swaps() (bool, string, error) {
	raw, err := unix.SysctlRaw("vm.swapusage") // struct xsw_usage: total, available and used, 64 bits each, and more
	if err != nil {
		return false, "", fmt.Errorf("vm.swapusage: %w", err)
	}
	if len(raw) < 24 {
		return false, "", fmt.Errorf("vm.swapusage: %d bytes are no xsw_usage", len(raw))
	}
	if total := binary.LittleEndian.Uint64(raw); total > 0 {
		return true, fmt.Sprintf("swap files of %d MiB (vm.swapusage)", total>>20), nil
	}
	n, err := mode()
	if err != nil {
		return false, "", err
	}
	return n&(compressorThenSwap|freezeCompressorToSwap) != 0, fmt.Sprintf("no swap file yet (vm.swapusage), and vm.compressor_mode is %d", n), nil
}

func compressorRatio() (float64, string, error) {
	p, err := mach.Count()
	if err != nil {
		return 0, "", err
	}
	if p.Compressed == 0 || p.Compressor == 0 {
		return 0, "", errors.New("the compressor holds nothing yet (host_statistics64)")
	}
	return float64(p.Compressed) / float64(p.Compressor), "pages in the compressor, over those it takes (host_statistics64)", nil
}

// idleAnonymous takes the idle share from below: the system does not say what backs an inactive page, so every page of a file
// counts as one of them.
func idleAnonymous() (int64, string, error) {
	p, err := mach.Count()
	if err != nil {
		return 0, "", err
	}
	idle := max(0, int64(p.Inactive)-int64(p.External))
	return idle * int64(os.Getpagesize()), "inactive pages, were every file-backed page among them (host_statistics64)", nil
}
