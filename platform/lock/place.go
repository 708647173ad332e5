//go:build !android

package lock

import "github.com/bmoe/bmoe/platform/pages"

// The store is the same lock: pages that are locked are not reclaimed.

func store() (bool, string, error) {
	n, from, err := inPlace()
	return n > 0, from, err
}

func storeTotal() (int64, string, error) { return inPlace() }

func alloc(n int) (held, error) {
	r, err := pages.Alloc(n)
	if err != nil {
		return nil, err
	}
	if err := r.Lock(0, n); err != nil {
		_ = r.Free() // the refusal is what the caller is to hear of
		return nil, err
	}
	return r, nil
}
