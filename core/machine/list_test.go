package machine

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Every fact is listed with its value and its source, and an unknown one with why.
func TestList(t *testing.T) {
	t.Parallel()
	p := sample()
	said := map[string]string{}
	for _, l := range p.List() {
		assert.NotEmpty(t, l.Value, l)
		said[l.About+": "+l.Fact] = l.Value + " | " + l.From
	}
	for fact, want := range map[string]string{
		"memory: total":                           "16.0 GiB | " + probed,
		"memory: held and kept when tried":        "unknown | not asked",
		"memory: under pressure":                  "compresses | " + probed,
		"memory: may be locked in place":          "0 B | " + probed,
		"memory: page":                            "16 KiB | " + probed,
		"cores: classes, fastest first":           "4 at 4.4 GHz, 6 at 2.9 GHz | ",
		"cores: weights per second, 1 token":      "93.1 GiB/s | " + probed,
		"GPU0: usable":                            "yes | " + probed,
		"GPU0: memory":                            "4096 MiB | " + probed,
		"GPU0: error of that, NMSE":               "unknown | ", // the wide one is listed last
		"storage: 64 KiB on 1 lane":               "954 MiB/s, repeats within 1.1x | " + probed,
		"storage: 64 KiB on 4 lanes":              "1907 MiB/s | ",
		"storage: scattered pages, one at a time": "24 MiB/s | " + probed,
		"storage: a mapping slows reads":          "unknown | saw nothing",
	} {
		assert.Equal(t, want, said[fact], fact)
	}

	p = Profile{Devices: []Device{{Name: "GPU0", Usable: No("ended by signal 11")}}, Storage: Storage{From: "--no-probe-io"}}
	var text []string
	for _, l := range p.List() {
		text = append(text, l.About+" "+l.Fact+" "+l.Value+" "+l.From)
	}
	all := strings.Join(text, "\n")
	assert.Contains(t, all, "GPU0 usable no ended by signal 11")
	assert.NotContains(t, all, "GPU0 memory", "an unusable device is asked nothing more")
	assert.Contains(t, all, "storage read rate unknown --no-probe-io")
}

// A fact that is added to the profile is listed: each field of a struct of facts gives one line.
func TestListLeavesNothingOut(t *testing.T) {
	t.Parallel()
	facts := func(v any) int { return reflect.TypeOf(v).NumField() }
	about := map[string]int{}
	p := Profile{Devices: []Device{{Name: "GPU0"}}}
	for _, l := range p.List() {
		about[l.About]++
	}
	assert.Equal(t, facts(Memory{}), about["memory"])
	assert.Equal(t, facts(Cores{})-1, about["cores"], "the classes' source is on their line")
	assert.Equal(t, facts(Backends{}), about["backends"])
	assert.Equal(t, facts(Device{})-1, about["GPU0"], "the name is the subject")
	assert.Equal(t, facts(Storage{})-1, about["storage"], "the curve's source is on its line")
}
