package dynlib

// Suffix ends a library's file name.
const Suffix = ".so"
