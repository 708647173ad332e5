package lock

import "fmt"

// left is what a system-wide limit leaves of what is wired, by anyone, but no more than one process may lock; in whole
// pages.
func left(global, each, wired, page int64) (int64, string) {
	n := max(0, global-wired)
	from := fmt.Sprintf("the system's wire limit of %d MiB, of which %d MiB are wired", global>>20, wired>>20)
	if each < n {
		n, from = each, fmt.Sprintf("the wire limit of %d MiB of one process", each>>20)
	}
	return n / page * page, from
}
