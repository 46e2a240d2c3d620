//go:build amd64 || arm64

package syswatch_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fleetctl/fleetctl/pkg/syswatch"
)

// faults are the actions of the watched code, by the name of the folder that it gets. says is the expected report, "" for none.
var faults = map[string]struct {
	says string
	do   func(dir string) error
}{
	"nothing":  {"", func(string) error { return nil }},
	"inside":   {"", func(dir string) error { _, err := os.ReadFile(filepath.Join(dir, "file")); return err }},
	"rooted":   {"", func(dir string) error { _, err := inRoot(dir, "file"); return err }},
	"beneath":  {"", func(dir string) error { return openat2(dir, "file", unix.RESOLVE_BENEATH) }},
	"not out":  {"", func(dir string) error { return refused(openat2(dir, "link", unix.RESOLVE_BENEATH)) }},
	"out":      {"read /etc/passwd", func(dir string) error { return openat2(dir, "link", 0) }},
	"top":      {"read /", func(string) error { return openat2("/", "etc/passwd", unix.RESOLVE_BENEATH) }},
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

// openat2 opens a file of a folder as the kernel is told to find it.
func openat2(dir, name string, resolve uint64) error {
	folder, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	fd, err := unix.Openat2(folder, name, &unix.OpenHow{Flags: unix.O_RDONLY, Resolve: resolve})
	if err == nil {
		err = unix.Close(fd)
	}
	return errors.Join(err, unix.Close(folder))
}

// refused turns the kernel's refusal to leave a folder into success.
func refused(err error) error {
	if errors.Is(err, unix.EXDEV) {
		return nil
	}
	return fmt.Errorf("not refused: %w", err)
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
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "file"), []byte("kept"), 0o600),
			os.Symlink("/etc/passwd", filepath.Join(dir, "link"))); err != nil {
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
