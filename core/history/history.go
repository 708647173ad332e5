// Package history keeps what plans predicted beside what came of them, one line a run, for one machine.
//
// It holds no prompt and no answer. It must not know how a prediction is made, nor decide what is kept of a run.
package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Kept is how many runs a history holds; older ones are dropped.
const Kept = 500

const (
	file     = "history.jsonl"
	maxBytes = 4 << 20 // of the file; a larger one is not ours
)

// Record is one run. Times are seconds.
type Record struct {
	When      time.Time `json:"when"`
	Model     string    `json:"model"`          // as the model's file calls it
	Bytes     int64     `json:"bytes"`          // of the model, which tells quantizations of one name apart
	Used      int       `json:"used,omitempty"` // routing width set by hand; 0: the model's own
	Machine   string    `json:"machine"`        // what the run was planned for, in words
	Tokens    int       `json:"tokens"`         // generated
	Cache     int64     `json:"cache"`          // bytes of the expert cache; 0: none
	Predicted float64   `json:"predicted"`      // per token; 0: not predicted
	Took      float64   `json:"took"`           // per token
	Credited  float64   `json:"credited"`       // hit rate
	HitRate   float64   `json:"hit_rate"`       // measured; meaningful where Cache is not 0

	CacheLocked  int64 `json:"cache_locked,omitempty"`  // bytes of the cache that were locked in place
	CacheRefused int64 `json:"cache_refused,omitempty"` // of it, what the system refused to lock
	DenseLocked  int64 `json:"dense_locked,omitempty"`  // of the dense set, likewise
	DenseRefused int64 `json:"dense_refused,omitempty"`
}

// Log is a history in a directory. The zero Log keeps nothing.
type Log struct{ dir string }

// In is the history in a directory, which need not exist.
func In(dir string) Log { return Log{dir} }

// Records are the runs, oldest first. A line that is no record is passed over: the file may be of a later version.
func (l Log) Records() ([]Record, error) {
	if l.dir == "" {
		return nil, nil
	}
	path := filepath.Join(l.dir, file)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case info.Size() > maxBytes:
		return nil, fmt.Errorf("%s: too large to be a history", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var records []Record
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxBytes+1)
	for lines.Scan() {
		var r Record
		if json.Unmarshal(lines.Bytes(), &r) == nil && r.valid() {
			records = append(records, r)
		}
	}
	return records, lines.Err()
}

// valid says whether a record can be: a rate is a share of one and nothing is negative.
func (r Record) valid() bool {
	share := func(v float64) bool { return v >= 0 && v <= 1 }
	return r.Model != "" && r.Bytes > 0 && r.Tokens > 0 && r.Cache >= 0 && min(r.CacheLocked, r.CacheRefused, r.DenseLocked, r.DenseRefused) >= 0 && r.Predicted >= 0 && r.Took > 0 && share(r.Credited) && share(r.HitRate)
}

// Add appends a run and drops the oldest beyond Kept. The file is there whole or as it was.
func (l Log) Add(r Record) error {
	if l.dir == "" {
		return nil
	}
	records, err := l.Records()
	if err != nil {
		return err
	}
	records = append(records, r)
	if len(records) > Kept {
		records = records[len(records)-Kept:]
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	for _, r := range records {
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(l.dir, ".history-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text.Bytes())
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(l.dir, file))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// least is how many tokens a run must have for its hit rate to say something: the first ones fill the cache.
const least = 16

// HitRate is what a model's cache did here: the cache and hit rate of its latest run with one that had the same routing
// width and did not hold all of the experts, which says nothing of less, and how many such runs there are. runs is 0 where
// there is none.
func HitRate(records []Record, model string, bytes int64, used int, experts int64) (cache int64, rate float64, runs int) {
	for _, r := range records {
		if r.Model == model && r.Bytes == bytes && r.Used == used && r.Cache > 0 && r.Cache < experts && r.Tokens >= least {
			cache, rate = r.Cache, r.HitRate
			runs++
		}
	}
	return cache, rate, runs
}

// Locks is what the latest run that asked for locked memory was granted.
type Locks struct {
	Asked        bool
	Refused      bool
	Cache, Dense int64 // bytes granted
}

// Granted reads the locks of the latest run, of any model, that asked for some: what a system grants is not the model's.
func Granted(records []Record) Locks {
	for i := len(records) - 1; i >= 0; i-- {
		r := records[i]
		refused := r.CacheRefused > 0 || r.DenseRefused > 0
		if refused || r.CacheLocked > 0 || r.DenseLocked > 0 {
			return Locks{true, refused, r.CacheLocked, r.DenseLocked}
		}
	}
	return Locks{}
}
