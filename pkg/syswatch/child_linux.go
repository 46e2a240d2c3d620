//go:build amd64 || arm64

package syswatch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Main is the last call of a test's TestMain. It runs the tests or, in a child process, runs watched for each folder that the child gets.
// An error of watched comes from the code under test, and is no failure of the test.
func Main(m *testing.M, watched func(dir string) error) {
	switch os.Getenv(stageVariable) {
	case confining:
		fmt.Fprintln(os.Stderr, "syswatch:", confine()) // it returns only where it cannot be done
		os.Exit(1)
	case confined:
		out := os.NewFile(answers, "answers")
		fmt.Fprintln(out) // what packages do before there is a main is not what is watched
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			said := "ok"
			if err := watched(lines.Text()); err != nil {
				said = err.Error()
			}
			fmt.Fprintf(out, "%q\n", said)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Child is a process that is watched. It is for one folder at a time.
type Child struct {
	command *exec.Cmd
	watcher *watcher
	folders io.WriteCloser
	answers *bufio.Reader
	served  chan error
}

// Start starts a child; it ends with the test. The test's TestMain has to end in Main.
func Start(t testing.TB) *Child {
	t.Helper()
	c, err := start()
	if err != nil {
		t.Fatalf("watch a process: %v", err)
	}
	t.Cleanup(func() {
		_ = c.folders.Close()
		waited := c.command.Wait()
		if err := errors.Join(waited, <-c.served); err != nil {
			t.Errorf("the watched process: %v", err)
		}
	})
	return c
}

func start() (*Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	defer ours.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	command := exec.Command(self) //nolint:noctx // it ends when the test closes its pipe
	command.Env = append(os.Environ(), stageVariable+"="+confining)
	command.Stderr = os.Stderr
	command.ExtraFiles = []*os.File{theirs, write}
	folders, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	_, _ = theirs.Close(), write.Close()
	listener, err := listenerFrom(ours)
	if err != nil {
		return nil, errors.Join(err, command.Wait())
	}
	c := &Child{
		command: command, watcher: &watcher{listener: listener, self: self}, folders: folders, answers: bufio.NewReader(read),
		served: make(chan error, 1),
	}
	go func() { c.served <- c.watcher.serve() }()
	if _, err := c.answers.ReadString('\n'); err != nil {
		return nil, fmt.Errorf("it did not begin: %w", errors.Join(err, command.Wait()))
	}
	return c, nil
}

// listenerFrom receives the descriptor of the kernel's questions.
func listenerFrom(socket *os.File) (int, error) {
	conn, err := net.FileConn(socket)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, fmt.Errorf("a connection of type %T", conn)
	}
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unixConn.ReadMsgUnix(make([]byte, 1), control)
	if err != nil {
		return 0, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return 0, errors.Join(errors.New("the process could not be watched"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return 0, errors.Join(errors.New("the process sent nothing to watch it by"), err)
	}
	unix.CloseOnExec(fds[0])
	return fds[0], nil
}

// Run has the child process do its work with a folder. It returns the forbidden actions of the child, and the output of the child's work.
func (c *Child) Run(t testing.TB, dir string) (did []string, said string) {
	t.Helper()
	actual, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	c.watcher.mu.Lock()
	c.watcher.folder, c.watcher.did = actual, nil
	c.watcher.mu.Unlock()
	if _, err := fmt.Fprintln(c.folders, actual); err != nil {
		t.Fatalf("the watched process is gone: %v", err)
	}
	line, err := c.answers.ReadString('\n')
	if err != nil {
		t.Fatalf("the watched process ended: %v", err)
	}
	c.watcher.mu.Lock()
	defer c.watcher.mu.Unlock()
	return c.watcher.did, strings.TrimSpace(line)
}
