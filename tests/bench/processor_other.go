//go:build !linux

package main

import "runtime"

// processor is what is known of it.
func processor() string { return runtime.GOARCH }
