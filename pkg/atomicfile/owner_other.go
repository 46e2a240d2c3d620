//go:build !unix

package atomicfile

// checkTemp looks at nothing: folders below a user's profile are the user's own.
func checkTemp(string) error { return nil }
