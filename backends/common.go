package backends

import (
	"embed"
	"io/fs"
)

//go:embed common
var common embed.FS

// Common is the library over llama.cpp's common library: the one part of bmoe that is C++, built of our own sources against
// Base.
var Common = Module{Name: "common", Target: "bmoe-common", Own: sources(common, "common")}

func sources(files fs.FS, folder string) fs.FS {
	inside, err := fs.Sub(files, folder)
	if err != nil {
		panic(err) // the folder is embedded
	}
	return inside
}
