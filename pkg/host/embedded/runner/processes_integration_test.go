//go:build integration

package runner

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process/processtest"
)

// processes are all that run for the world's Deployments, with their command lines, whoever remembers them.
func (w *world) processes() map[process.Identity]string {
	w.Helper()
	return processtest.Of(w, filepath.Join(w.dir, runDir))
}

// wantProcesses waits until exactly these processes run, and no others of those seen before.
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
