// Package devices tries compute modules that do what drivers do wrong, and says what is found of each.
package devices
