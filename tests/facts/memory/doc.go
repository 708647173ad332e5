// Package memory holds what bmoe is told about memory against the truth: groups that the kernel limits, locks that it refuses.
package memory
