// Package safe holds what a person can do wrong with bmoe-cli, and what can go wrong around it, against the program as it
// is shipped: bad files, bad flags, drives that fail, interrupts. Each ends in one clear line and an exit code, and never
// in a crash, a hang or a half-written answer.
//
// It knows the program by its flags, its output and its exit codes alone.
package safe
