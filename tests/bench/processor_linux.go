package main

import (
	"os"
	"runtime"
	"strings"
)

// processor is the name that the system has for it.
func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo") // its architecture serves where there is none
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
