package params

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MiB is the unit of a size typed without a suffix, where one may be.
const MiB = int64(1) << 20

// suffixes of a size, the ones formatSize writes first. K, M, G and T are powers of 1024 with or without "iB"; KB, MB, GB
// and TB are powers of 1000.
var suffixes = []struct {
	text  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3},
	{"T", 1 << 40}, {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10},
	{"B", 1},
}

// parseSize reads "3GiB", "1.5G", "3072M" or, where unit is not 0, "3072" as bytes. Letter case is ignored.
func parseSize(text string, unit int64) (int64, error) {
	number := text
	for _, s := range suffixes {
		if len(text) > len(s.text) && strings.EqualFold(text[len(text)-len(s.text):], s.text) {
			number, unit = text[:len(text)-len(s.text)], s.bytes
			break
		}
	}
	if number == "" || strings.Trim(number, "0123456789.") != "" {
		return 0, fmt.Errorf("%q is not a size such as 3GiB or 3072M", text)
	}
	if unit == 0 {
		return 0, fmt.Errorf("%q has no unit: write %sM or %sG", text, number, number)
	}
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		if n > math.MaxInt64/unit {
			return 0, fmt.Errorf("%q is more bytes than can be counted", text)
		}
		return n * unit, nil
	} else if errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("%q is more bytes than can be counted", text)
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a size such as 3GiB or 3072M", text)
	}
	if f *= float64(unit); f >= math.MaxInt64 {
		return 0, fmt.Errorf("%q is more bytes than can be counted", text)
	}
	return int64(f), nil
}

// formatSize writes bytes exactly: without a suffix where they are whole units, else in the greatest unit they fill.
func formatSize(bytes, unit int64) string {
	if unit != 0 && bytes%unit == 0 {
		return strconv.FormatInt(bytes/unit, 10)
	}
	for _, s := range suffixes[:4] {
		if bytes >= s.bytes && bytes%s.bytes == 0 {
			return strconv.FormatInt(bytes/s.bytes, 10) + s.text
		}
	}
	return strconv.FormatInt(bytes, 10) + "B"
}
