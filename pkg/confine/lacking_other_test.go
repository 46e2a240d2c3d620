//go:build !linux || !(amd64 || arm64)

package confine_test

// lack is for Linux.
func lack(string) int { return 1 }
