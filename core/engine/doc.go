// Package engine is a session: it opens a model as a Config says, generates, and reports what that took.
//
// It must not decide anything a plan decides, parse flags or print.
package engine
