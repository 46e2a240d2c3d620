//go:build unix

package variables

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A command leaves a program behind that keeps the command's output open. Nobody waits for this program.
func TestCommandLeavesAProgramBehind(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	begun := time.Now()
	value, err := variableFromCommand(t.Context(), []string{"sh", "-c", "sleep 600 & echo $! >" + pid + "; echo value"}, t.TempDir(), nil)
	if err != nil || value != "value" {
		t.Errorf("%q, %v", value, err)
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	text, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(number, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}
