package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// script writes a program that logs each time it is asked and then does what body says.
func script(t *testing.T, body string) (path string, asked func() int) {
	t.Helper()
	dir := t.TempDir()
	path, log := filepath.Join(dir, "manager"), filepath.Join(dir, "log")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho asked >>"+log+"\n"+body), 0o700); err != nil {
		t.Fatal(err)
	}
	return path, func() int {
		raw, err := os.ReadFile(log)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return len(raw) / len("asked\n")
	}
}

const helpLine = `echo '      --health-addr string   The address. (default ":9440")'`

// A machine under load may need longer than we wait: that is no program without flags, which would take the ports of others.
func TestHelpIsAskedAgain(t *testing.T) {
	path, asked := script(t, `test "$(wc -l <"${0%/*}/log")" -gt 1 || sleep 60`+"\n"+helpLine)
	help := newHelpTexts(t.TempDir())
	help.timeout = time.Second
	silent := (*silentError)(nil)
	if flags, err := help.of(t.Context(), "sha256:1", path, nil); !errors.As(err, &silent) {
		t.Fatalf("a program that says nothing: %v, %v", flags, err)
	}
	for range 2 {
		flags, err := help.of(t.Context(), "sha256:1", path, nil)
		if err != nil || flags["health-addr"].Default != ":9440" {
			t.Fatalf("%v, %v", flags, err)
		}
	}
	if n := asked(); n != 2 {
		t.Fatalf("asked %d times", n)
	}
	again := newHelpTexts(help.dir)
	if flags, err := again.of(t.Context(), "sha256:1", path, nil); err != nil || flags["health-addr"].Name == "" || asked() != 2 {
		t.Fatalf("not kept: %v, %v", flags, err)
	}
}

func TestHelpOfProgramsWithoutOne(t *testing.T) {
	// What a program had not finished to say is not kept for the next runner.
	for body, again := range map[string]int{"exit 2": 1, "echo working; sleep 60": 2} {
		path, asked := script(t, body)
		help := newHelpTexts(t.TempDir())
		help.timeout = time.Second
		for range 2 {
			if flags, err := help.of(t.Context(), "sha256:1", path, nil); err != nil || len(flags) != 0 {
				t.Fatalf("%s: %v, %v", body, flags, err)
			}
		}
		if n := asked(); n != 1 {
			t.Fatalf("%s: asked %d times", body, n)
		}
		next := newHelpTexts(help.dir)
		next.timeout = help.timeout
		if _, err := next.of(t.Context(), "sha256:1", path, nil); err != nil || asked() != again {
			t.Fatalf("%s: %v, with the next runner's asked %d times, want %d", body, err, asked(), again)
		}
	}
	path, asked := script(t, "sleep 60")
	help := newHelpTexts(t.TempDir())
	help.timeout = 100 * time.Millisecond
	for try := 1; try <= helpTries; try++ {
		flags, err := help.of(t.Context(), "sha256:1", path, nil)
		if (err == nil) != (try == helpTries) || len(flags) != 0 || asked() != try {
			t.Fatalf("try %d: %v, %v, asked %d times", try, flags, err, asked())
		}
	}
}

func TestHelpThatCannotBeAsked(t *testing.T) {
	help := newHelpTexts(t.TempDir())
	missing := filepath.Join(t.TempDir(), "manager")
	for range helpTries + 1 {
		if flags, err := help.of(t.Context(), "sha256:1", missing, nil); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("%v, %v", flags, err)
		}
	}
	path, _ := script(t, "sleep 60")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if flags, err := help.of(ctx, "sha256:1", path, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a caller that gives up: %v, %v", flags, err)
	}
}
