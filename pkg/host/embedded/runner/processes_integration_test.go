//go:build integration

package runner

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// processes are all that run for the world's Deployments, with their command lines, whoever remembers them: the environment of each
// names the world's folder, and that of nothing else does.
func (w *world) processes() map[process.Identity]string {
	w.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		w.Fatal(err)
	}
	mark, found := []byte(filepath.Join(w.dir, runDir)+"/"), map[process.Identity]string{}
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			w.Fatal(err)
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

// wantProcesses waits until there are exactly these, and none of those that were seen before besides.
func (w *world) wantProcesses(seen map[process.Identity]string, want ...process.Identity) {
	w.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		running := w.processes()
		for id, line := range seen {
			if id.Alive() {
				running[id] = line
			}
		}
		if len(running) == len(want) && !slices.ContainsFunc(want, func(id process.Identity) bool { _, ok := running[id]; return !ok }) {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("there are the processes %v, want %v", running, want)
		}
	}
}

// sees waits until a process runs with those words in its command line, and remembers all that it meets.
func (w *world) sees(seen map[process.Identity]string, words string) {
	w.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		running := w.processes()
		maps.Copy(seen, running)
		for _, line := range running {
			if strings.Contains(line, words) {
				return
			}
		}
		if time.Now().After(deadline) {
			w.Fatalf("no process has %q: %v", words, running)
		}
	}
}
