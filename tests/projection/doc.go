// Package projection compares what a session was projected to reserve with what it reserves.
package projection
