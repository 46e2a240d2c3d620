// Package command runs other programs and makes their failures readable.
package command

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// shown is how much of a failed program's output goes into the error: the first lines name the cause as often as the
// last, so both ends are kept.
const shown = 3000

// Command is a program to run.
type Command struct {
	Dir  string
	Env  []string // in addition to this process's
	Args []string
}

// Run runs the command and returns its standard output.
func (c Command) Run(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Dir = c.Dir
	cmd.Env = append(os.Environ(), c.Env...)
	// A child must not outlive an interrupt, nor must its own children (compilers, chrooted programs).
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, ends(stderr.String()+stdout.String()))
	}
	return stdout.String(), nil
}

func ends(output string) string {
	output = strings.TrimSpace(output)
	if len(output) <= shown {
		return output
	}
	return output[:shown/2] + "\n…\n" + output[len(output)-shown/2:]
}
