package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// programDelay bounds the wait for a program's output after the program has ended or was asked to end.
const programDelay = time.Second

// userProgram is a program of the user: git, a hook, or a program that signs.
type userProgram struct {
	path   string
	args   []string
	dir    string
	env    []string
	input  []byte
	stdout io.Writer
	stderr io.Writer
}

// run runs the program to its end, as git would. It does not wait for background processes that the program leaves and that keep its output
// open. A script without an interpreter line runs in sh.
func (p userProgram) run(ctx context.Context) error {
	err := p.start(ctx, p.path, p.args...)
	if errors.Is(err, syscall.ENOEXEC) && runtime.GOOS != "windows" {
		err = p.start(ctx, "/bin/sh", append([]string{p.path}, p.args...)...)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (p userProgram) start(ctx context.Context, path string, args ...string) error {
	cmd := exec.CommandContext(ctx, path, args...) //nolint:gosec // a program of the user
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = p.dir, p.env, bytes.NewReader(p.input), p.stdout, p.stderr
	cmd.WaitDelay = programDelay
	if runtime.GOOS != "windows" {
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // on SIGTERM, git ends its filters
	}
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) { // the program itself has succeeded
		return nil
	}
	return err
}

// speech keeps the beginning and the end of a program's output, however long it is.
type speech struct {
	first, last []byte
	left        bool // output between first and last was dropped
}

const speechHalf = 16 << 10

// Write implements io.Writer.
func (s *speech) Write(p []byte) (int, error) {
	n := len(p)
	head := min(len(p), speechHalf-len(s.first))
	s.first, p = append(s.first, p[:head]...), p[head:]
	if over := len(p) - speechHalf; over > 0 {
		p, s.last, s.left = p[over:], s.last[:0], true
	}
	if over := len(s.last) + len(p) - speechHalf; over > 0 {
		s.last, s.left = append(s.last[:0], s.last[over:]...), true
	}
	s.last = append(s.last, p...)
	return n, nil
}

func (s *speech) String() string {
	between := ""
	if s.left {
		between = "\n…\n"
	}
	return string(s.first) + between + string(s.last)
}
