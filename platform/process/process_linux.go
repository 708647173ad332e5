package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func read() (Usage, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return Usage{}, err
	}
	io, _ := os.ReadFile("/proc/self/io") // a kernel may be built without it: Unknown then
	u, err := parse(string(status), string(io))
	if err != nil {
		return Usage{}, err
	}
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err == nil {
		u.MajorFaults = int64(r.Majflt)
	}
	return u, nil
}

// parse takes the texts of /proc/self/status and /proc/self/io.
func parse(status, io string) (Usage, error) {
	u := unknown
	for _, f := range []struct {
		text, key string
		unit      int64
		to        *int64
	}{
		{status, "RssAnon", 1 << 10, &u.Anonymous},
		{status, "VmLck", 1 << 10, &u.Locked},
		{status, "VmRSS", 1 << 10, &u.Resident},
		{status, "VmHWM", 1 << 10, &u.PeakResident},
		{io, "read_bytes", 1, &u.StorageRead},
	} {
		for line := range strings.Lines(f.text) {
			value, ok := strings.CutPrefix(line, f.key+":")
			if !ok {
				continue
			}
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err != nil {
				return Usage{}, fmt.Errorf("%s: %w", f.key, err)
			}
			*f.to = n * f.unit
		}
	}
	return u, nil
}
