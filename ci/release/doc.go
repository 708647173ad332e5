// Package release makes what people download: for each system whose libraries can be built here, an archive with one top folder,
// and packages where the system has them. It decides what goes in, has goreleaser pack it, and checks what came out.
//
// It must not know how llama.cpp is built (package llama does) nor how bytes get into an archive (packaging/goreleaser.yaml).
package release
