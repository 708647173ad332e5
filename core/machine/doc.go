// Package machine is the machine profile: what a plan may know about a machine, each fact known or unknown and with where
// it came from.
//
// A profile is data. It is filled by probes, read by core/plan, and written to and read from JSON, so that a plan can be
// made for a machine that is not here. It holds no user name and no path: [Profile.Encode] takes them out.
//
// It must not measure anything, know an operating system, a vendor or a backend, or decide.
package machine
