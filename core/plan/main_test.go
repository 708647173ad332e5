package plan

import (
	"flag"
	"os"
	"testing"
)

// TestMain has every property tried on more machines than rapid would by itself; the eight together see thousands.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "250"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
