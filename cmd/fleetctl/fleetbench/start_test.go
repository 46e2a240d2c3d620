//go:build e2e

package fleetbench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// starts is how often each program is started, in turn. The median counts.
const starts = 31

// BenchmarkStart measures what a command costs before it does anything: the program prints its version.
func BenchmarkStart(b *testing.B) {
	programs := need(b, envPeers)
	commands := []struct {
		name string
		args []string
		env  string
	}{
		{name: "fleetctl", args: []string{need(b, envProgram), "version"}},
		{name: "clusterctl", args: []string{filepath.Join(programs, "clusterctl"), "version"}, env: "CLUSTERCTL_DISABLE_VERSIONCHECK=true"},
		{name: "kubectl", args: []string{filepath.Join(programs, "kubectl"), "version", "--client"}},
	}
	results := make([][]took, len(commands))
	for b.Loop() {
		for range starts {
			for i, c := range commands {
				cmd := exec.CommandContext(b.Context(), c.args[0], c.args[1:]...)
				cmd.Env = append(os.Environ(), c.env)
				t, err := run(cmd)
				if err != nil {
					b.Fatalf("%s: %v", c.name, err)
				}
				results[i] = append(results[i], t)
			}
		}
	}
	own := median(results[0])
	for i, c := range commands {
		t := median(results[i])
		fmt.Printf("%-12s %5d ms  %5d ms of processors  %5d MiB  %s\n", c.name, t.wall.Milliseconds(), t.cpu.Milliseconds(), t.peak>>20, t.note)
	}
	for i, c := range commands[1:] {
		fmt.Printf("ratio start-%s %.2f\n", c.name, median(results[i+1]).wall.Seconds()/own.wall.Seconds())
	}
}
