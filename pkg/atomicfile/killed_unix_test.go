//go:build unix

package atomicfile

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// envWriter makes the test program a writer of the file that it names.
const envWriter = "ATOMICFILE_TEST_WRITER"

// TestMain is the program of TestKilledWriter where the environment names a file.
func TestMain(m *testing.M) {
	path := os.Getenv(envWriter)
	if path == "" {
		os.Exit(m.Run())
	}
	if err := writeWhenTold(path); err != nil {
		_, _ = io.WriteString(os.Stderr, err.Error()+"\n")
		os.Exit(1)
	}
}

// writeWhenTold writes a file. It tells when everything is written but not yet in its place, and goes on when it is told to.
func writeWhenTold(path string) error {
	w := writer{exact: true, flush: func(f *os.File) error {
		if info, err := f.Stat(); err != nil || info.IsDir() {
			return err
		}
		_, _ = io.WriteString(os.Stdout, "\nwritten\n")
		_, err := bufio.NewReader(os.Stdin).ReadString('\n')
		return err
	}}
	return w.write(path, []byte("of the other"), 0o600)
}

// beginWriter starts a writer of path, which has written everything and waits.
func beginWriter(t *testing.T, path string) (cmd *exec.Cmd, goOn io.Writer) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), envWriter+"="+path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for line := ""; line != "written\n"; {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	return cmd, in
}

// temporaries are the temporary files in a folder.
func temporaries(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, is := IsTemporary(e.Name()); is {
			all = append(all, e.Name())
		}
	}
	return all
}

// A secret that a killed writer left beside its place is gone once anybody has written the same file, and a living writer goes on.
func TestKilledWriter(t *testing.T) {
	for name, again := range map[string]func(string) error{
		"Write":         func(path string) error { return Write(path, []byte("new"), 0o600) },
		"WriteVolatile": func(path string) error { return WriteVolatile(path, []byte("new"), 0o600) },
		"Create":        func(path string) error { return Create(path, []byte("new"), 0o600) },
		"New": func(path string) error {
			f, err := New(path, 0o600)
			if err != nil {
				return err
			}
			if _, err := f.Write([]byte("new")); err != nil {
				return err
			}
			return f.Commit()
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "kubeconfig")
			stranger := filepath.Join(dir, TempName("other")) // another file's is not this writer's business
			if err := os.WriteFile(stranger, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			killed, _ := beginWriter(t, path)
			living, goOn := beginWriter(t, path)
			if err := killed.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = killed.Wait()
			if got := temporaries(t, dir); len(got) != 3 {
				t.Fatalf("nothing is left to remove: %v", got)
			}
			if err := again(path); err != nil {
				t.Fatal(err)
			}
			holds(t, path, "new")
			if got := temporaries(t, dir); len(got) != 2 {
				t.Errorf("left: %v; want the file of the living writer, and another's", got)
			}
			if _, err := io.WriteString(goOn, "\n"); err != nil {
				t.Fatal(err)
			}
			if err := living.Wait(); err != nil {
				t.Fatal(err)
			}
			holds(t, path, "of the other")
			if got := temporaries(t, dir); len(got) != 1 || got[0] != filepath.Base(stranger) {
				t.Errorf("left: %v", got)
			}
		})
	}
}
