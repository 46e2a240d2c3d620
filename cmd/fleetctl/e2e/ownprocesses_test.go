//go:build e2e

package e2e

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A host is a daemon in a session that no terminal and no process group reaches. If a run of these tests is cut off, the daemon must end,
// too: hosts that were left have slowed the next run for hours.
func TestOwnProcesses(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGKILL": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The daemon keeps its end of this pipe open for as long as it lives.
			reader, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = reader.Close() }()
			cmd := exec.Command("../../../scripts/without-network.sh", "bash", "-c", "setsid sleep 1h & echo started; sleep 1h")
			cmd.Stdout, cmd.Stderr = writer, os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = writer.Close()
			if err := reader.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(reader)
			line, err := lines.ReadString('\n')
			if err == nil {
				err = cmd.Process.Signal(end)
			}
			rest, readErr := io.ReadAll(lines)
			_ = cmd.Wait()
			if err != nil || strings.TrimSpace(line) != "started" {
				t.Fatalf("the daemon did not start: %q, %v", line, err)
			}
			if readErr != nil {
				t.Errorf("the daemon outlives %s: %v (%q)", name, readErr, rest)
			}
		})
	}
}
