package process

import "os"

// expendable raises the score that the kernel chooses by, which a process may always do to itself. Source: proc(5),
// /proc/pid/oom_score_adj.
func expendable() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // where it can't be written, nothing is said to the system
}
