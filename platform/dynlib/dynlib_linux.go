package dynlib

import (
	"debug/elf"
	"fmt"
	"os"
)

// Suffix ends a library's file name.
const Suffix = ".so"

// whole compares the file's length with what its headers place in it: the dynamic loader maps segments without doing so,
// and touching a page that has no file behind it is a bus error.
func whole(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	for _, s := range f.Progs {
		if s.Type == elf.PT_LOAD && s.Off+s.Filesz > uint64(info.Size()) {
			return fmt.Errorf("it has %d bytes and wants at least %d", info.Size(), s.Off+s.Filesz)
		}
	}
	return nil
}
