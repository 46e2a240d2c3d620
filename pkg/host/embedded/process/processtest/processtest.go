// Package processtest looks for processes in the process table, so that tests need not believe the records of what they test.
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

// Of returns the processes whose environment names something within the folder, with their command lines. All that an embedded host
// runs has its home there, and what that starts inherits it.
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
