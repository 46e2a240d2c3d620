package confine_test

import (
	"testing"

	"golang.org/x/sys/unix"
)

// inheritable opens a file for the processes that this one starts, too, as a shell does with exec 7<file.
func inheritable(t *testing.T, name string) int {
	t.Helper()
	file, err := unix.Open(name, unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(file) })
	return file
}
