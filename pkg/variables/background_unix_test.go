//go:build unix

package variables

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fleetctl/fleetctl/pkg/diag"
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
	number, err := strconv.Atoi(readPID(t, pid))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(number, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

// A command that hangs ends with the programs that it has started: they may hold a lock, or a connection with the credentials.
func TestCommandThatHangsEndsWhole(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	alive, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	if err := alive.SetReadDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { // when the inner program runs, the outer one is given up
		_, err := alive.Read(make([]byte, 1))
		cancel(cmp.Or(err, errors.New("gave up")))
	}()
	inner := "exec 3>" + pipe + "; printf x >&3; exec sleep 600"
	_, err = variableFromCommand(ctx, []string{"sh", "-c", "sh -c '" + inner + "' & wait"}, dir, nil)
	if err == nil || !strings.Contains(err.Error(), "no value in time: gave up") || !strings.Contains(diag.Hint(err), "ask nothing") {
		t.Errorf("%v\n%s", err, diag.Hint(err))
	}
	last, err := os.OpenFile(pipe, os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer last.Close()
	if err := errors.Join(alive.Close(), last.SetReadDeadline(time.Now().Add(5*time.Minute))); err != nil {
		t.Fatal(err)
	}
	if n, err := last.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("the inner program still has its pipe open: %v", err)
	}
}

// A command that would ask at the terminal is told at once that there is none.
func TestCommandHasNoTerminal(t *testing.T) {
	_, err := variableFromCommand(t.Context(), []string{"sh", "-c", "read answer </dev/tty && echo value"}, t.TempDir(), nil)
	if err == nil || !strings.Contains(err.Error(), "/dev/tty") {
		t.Errorf("%v", err)
	}
	cmd := exec.CommandContext(t.Context(), "sleep", "600")
	ownSession(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if session, err := unix.Getsid(cmd.Process.Pid); err != nil || session != cmd.Process.Pid {
		t.Errorf("it runs in the session %d, and is %d: %v", session, cmd.Process.Pid, err)
	}
	if err := cmd.Cancel(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it ended well")
	}
}

func readPID(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}
