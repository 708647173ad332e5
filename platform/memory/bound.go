package memory

import "fmt"

// bound is a limit on what this process alone may take, or its job, may take. It refuses memory and ends nobody.
type bound struct {
	name  string // of the limit, for people
	bytes int64
	held  int64 // what of it is taken
}

// within lowers what may be held to what the bounds leave.
func (f *Facts) within(bounds []bound) {
	for _, b := range bounds {
		if f.Limit == 0 || b.bytes < f.Limit {
			f.Limit = b.bytes
		}
		if left := max(0, b.bytes-b.held); left < f.Available {
			f.Available = left
			f.Why = fmt.Sprintf("%s, %d MiB, of which %d MiB are taken", b.name, b.bytes>>20, b.held>>20)
		}
	}
}
