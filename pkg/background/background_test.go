package background_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/background"
)

// The test binary also plays the background program: it waits until its reader is gone, writes a hello to both of its outputs, and then
// writes a file.
func TestMain(m *testing.M) {
	done := os.Getenv("BACKGROUND_TEST_DONE")
	if done == "" {
		os.Exit(m.Run())
	}
	background.Outlive()
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := errors.Join(background.Greet(os.Stdout, "hello"), background.Greet(os.Stderr, "hello")); err != nil {
		os.Exit(1)
	}
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		os.Exit(2)
	}
	os.Exit(0)
}

// The starter of the program is gone when the program writes its hello. The program goes on.
func TestOutlivesItsReader(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	done := filepath.Join(t.TempDir(), "done")
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), "BACKGROUND_TEST_DONE="+done)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var ends []io.Closer
	for _, to := range []*io.Writer{&cmd.Stdout, &cmd.Stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		*to, ends = w, append(ends, r, w)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, end := range append(ends, in) { // the input last: it is what the program waits for
		if err := end.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended: %v", err)
	}
	if _, err := os.Stat(done); err != nil {
		t.Error(err)
	}
}

func TestGreet(t *testing.T) {
	r, w := io.Pipe()
	go func() {
		_ = w.CloseWithError(background.Greet(w, map[string]int{"port": 7}))
	}()
	if line, err := bufio.NewReader(r).ReadString('\n'); err != nil || line != `{"port":7}`+"\n" {
		t.Errorf("%q, %v", line, err)
	}
	broken := errors.New("broken")
	if err := background.Greet(writer(func([]byte) (int, error) { return 0, broken }), 1); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// Hear returns the first line of a program. Different errors tell that the program wrote nothing, and that the wait was over.
func TestHear(t *testing.T) {
	if line, err := background.Hear(t.Context(), io.NopCloser(strings.NewReader("{\"port\":1}\nmore"))); line != "{\"port\":1}\n" ||
		err != nil {
		t.Errorf("got %q, %v", line, err)
	}
	if _, err := background.Hear(t.Context(), io.NopCloser(strings.NewReader("half"))); !errors.Is(err, background.ErrSilent) {
		t.Errorf("a program that ended: %v", err)
	}
	r, w := io.Pipe()
	late := errors.New("late")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(late)
	if _, err := background.Hear(ctx, r); !errors.Is(err, late) {
		t.Errorf("at the end of the wait: %v", err)
	}
	if _, err := w.Write([]byte("x")); err == nil {
		t.Error("it still listens")
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("FIRST_OF_TWO", "1")
	t.Setenv("A_TOKEN", "secret")
	if got := background.Environment("FIRST_OF_TWO", "SECOND_OF_TWO"); len(got) != 1 || got[0] != "FIRST_OF_TWO=1" {
		t.Errorf("got %q", got)
	}
}

// maxLog is the size that a log may have.
const maxLog = 1 << 20

// A log that has grown large is put aside, and is not lost; a small one goes on.
func TestOpenLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for i, size := range []int64{maxLog, maxLog + 1, 1} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		log, err := background.OpenLog(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := log.Stat()
		if err != nil || (info.Size() == 0) != (size > maxLog) {
			t.Errorf("%d: a log of %d bytes has %d now, %v", i, size, info.Size(), err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if old, err := os.Stat(path + ".1"); err != nil || old.Size() != maxLog+1 {
		t.Errorf("the old one: %v, %v", old, err)
	}
}
