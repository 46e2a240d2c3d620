// Package processtest finds processes in the process table, so that a test need not trust the records of the code that it tests.
package processtest

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// Of returns the processes whose environment has a path in folder, with their command lines. Each process of an embedded host has its home
// in the host's folder, and its children inherit that.
func Of(t testing.TB, folder string) map[process.Identity]string {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	mark, found := []byte(folder+string(filepath.Separator)), map[process.Identity]string{}
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			t.Fatal(err)
		}
		// What ends while we look has no identity, or nothing to read.
		id, err := process.Find(pid)
		environment, readErr := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || readErr != nil || !bytes.Contains(environment, mark) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		found[id] = strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " ")
	}
	return found
}
