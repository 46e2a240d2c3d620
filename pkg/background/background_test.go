package background_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/background"
)

// The test binary is the program in the background, too: it waits until its reader is gone, says hello on both of its outputs, and then
// leaves a file.
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

// The one that started it is gone when it says hello: it goes on.
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
