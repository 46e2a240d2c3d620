//go:build amd64 || arm64

package syswatch_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/syswatch"
)

// faults are what the watched code does, by the name of the folder that it is given; says is what is to be reported, "" where nothing is.
var faults = map[string]struct {
	says string
	do   func(dir string) error
}{
	"nothing":  {"", func(string) error { return nil }},
	"inside":   {"", func(dir string) error { _, err := os.ReadFile(filepath.Join(dir, "file")); return err }},
	"rooted":   {"", func(dir string) error { _, err := inRoot(dir, "file"); return err }},
	"listed":   {"", func(dir string) error { _, err := os.ReadDir(dir); return err }},
	"program":  {"started /", func(string) error { return exec.Command("/bin/sh", "-c", "exit 0").Run() }},
	"internet": {"opened a socket", func(string) error { _, err := net.Dial("tcp", "127.0.0.1:9"); return err }},
	"socket":   {"opened a socket", func(string) error { _, err := net.Dial("unix", "/nowhere"); return err }},
	"outside":  {"read /etc/passwd", func(string) error { _, err := os.ReadFile("/etc/passwd"); return err }},
	"upwards":  {"read /", func(dir string) error { _, err := os.ReadFile(filepath.Join(dir, "..", "other")); return err }},
	"missing":  {"read /nowhere", func(string) error { _, err := os.ReadFile("/nowhere"); return err }},
	"link":     {"read /etc/passwd", func(dir string) error { _, err := os.ReadFile(filepath.Join(dir, "link")); return err }},
	"secrets":  {"environ", func(string) error { _, err := os.ReadFile("/proc/self/environ"); return err }},
	"write":    {"wrote ", func(dir string) error { return os.WriteFile(filepath.Join(dir, "file"), nil, 0o600) }},
	"temp":     {"wrote ", func(string) error { _, err := os.MkdirTemp("", "x"); return err }},
	"remove":   {"wrote ", func(dir string) error { return os.Remove(filepath.Join(dir, "file")) }},
}

func inRoot(dir, name string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.ReadFile(name)
}

func TestMain(m *testing.M) {
	syswatch.Main(m, func(dir string) error {
		fault, ok := faults[filepath.Base(dir)]
		if !ok {
			return errors.New("no such fault")
		}
		return fault.do(dir)
	})
}

// Whatever a process does that it must not is reported, and does not happen; all else works and is not.
func TestFaults(t *testing.T) {
	child := syswatch.Start(t)
	for name, fault := range faults {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "file"), []byte("kept"), 0o600), os.Symlink("/etc/passwd", filepath.Join(dir, "link"))); err != nil {
			t.Fatal(err)
		}
		did, said := child.Run(t, dir)
		text := strings.Join(did, "; ")
		if fault.says == "" && (text != "" || said != `"ok"`) || fault.says != "" && (!strings.Contains(text, fault.says) || said == `"ok"`) {
			t.Errorf("%s: reported %q, and the code said %s", name, text, said)
		}
		if content, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(content) != "kept" {
			t.Errorf("%s: the file is %q (%v)", name, content, err)
		}
	}
}
