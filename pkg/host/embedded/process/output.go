package process

import (
	"bytes"
	"os/exec"
)

// CombinedOutput runs cmd to its end and returns its output, as the method of exec.Cmd does. In addition, the end of the command's context
// ends all processes that the program has started, and the end of this process ends the program, even after a kill -9. That is needed
// because no record names such a program, so EndLeftovers would not find it.
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

// RunAttached runs cmd to its end in the process group of this process, so that it has the same terminal. The end of this process ends the
// program, even after a kill -9. It does not end other processes that the program has started.
func RunAttached(cmd *exec.Cmd) error {
	if err := startAttached(cmd); err != nil {
		return err
	}
	return cmd.Wait()
}
