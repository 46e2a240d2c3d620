package confine_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestEndsWithItsParent kills who started a process, and nobody else.
func TestEndsWithItsParent(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "CONFINE_TEST_PARENT="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for pid == 0 {
		if t.Context().Err() != nil {
			t.Fatal("it did not start")
		}
		if text, err := os.ReadFile(filepath.Join(dir, "pid")); err == nil {
			if pid, err = strconv.Atoi(string(text)); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(time.Millisecond)
	}
	handle, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(handle)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, 30_000)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n != 1 {
			t.Errorf("the process outlives who started it: %v", err)
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		return
	}
}
