package process

import "os/exec"

// together does nothing: a child is ended by itself here, and starts nothing.
func together(*exec.Cmd) {}
