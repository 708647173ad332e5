// Package storage holds what bmoe is told about a drive against the truth: file systems that are mounted for it, the kernel's
// own word on direct reads, and files that are not what they were.
package storage
