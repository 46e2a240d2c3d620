package process

import (
	"bytes"
	"os/exec"
)

// CombinedOutput runs cmd to its end and returns what it says, as exec.Cmd's method of that name does. Other than that one it makes the end
// of the command's context the end of all that the program has started, and the end of this process the program's own, also a kill -9:
// such a program is in no record, so nobody could end it later.
func CombinedOutput(cmd *exec.Cmd) ([]byte, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Cancel = func() error {
		killGroup(cmd.Process.Pid)
		return nil
	}
	if _, err := spawn(cmd); err != nil {
		return nil, err
	}
	err := cmd.Wait()
	return out.Bytes(), err
}

// RunAttached runs cmd to its end in our own process group, so that it has the terminal as we have it. The end of this process is the program's
// own, also a kill -9; what the program starts is its own business.
func RunAttached(cmd *exec.Cmd) error {
	if err := startAttached(cmd); err != nil {
		return err
	}
	return cmd.Wait()
}
