package confine

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
)

// process is a started process.
type process struct {
	in   io.WriteCloser
	out  io.ReadCloser
	cmd  *exec.Cmd
	once sync.Once
	gone chan struct{}
}

// spawn starts a process, as confined as the system allows from outside.
func spawn(command func() *exec.Cmd) (*process, error) {
	type started struct {
		p   *process
		err error
	}
	result := make(chan started, 1)
	go func() {
		// On Linux a process ends with the thread that started it, and so this one stays.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		p, err := spawnHere(command)
		result <- started{p, err}
		if err == nil {
			_ = p.cmd.Wait() // how it ended is in ProcessState
			close(p.gone)
		}
	}()
	s := <-result
	return s.p, s.err
}

func spawnHere(command func() *exec.Cmd) (p *process, err error) {
	for _, attributes := range confinements() {
		p = &process{cmd: command(), gone: make(chan struct{})}
		p.cmd.SysProcAttr = attributes
		var inner [2]*os.File
		if inner[0], p.in, err = os.Pipe(); err != nil {
			return nil, err
		}
		var out *os.File
		if out, inner[1], err = os.Pipe(); err != nil {
			return nil, err
		}
		widen(inner[1])
		widen(inner[0])
		p.out, p.cmd.Stdin, p.cmd.Stdout = out, inner[0], inner[1]
		err = p.cmd.Start()
		for _, f := range inner {
			_ = f.Close() // they are the child's now
		}
		if err == nil {
			return p, nil
		}
		_ = p.in.Close()  // nobody has written
		_ = p.out.Close() // nobody has read
	}
	return nil, err
}

// kill ends the process without waiting.
func (p *process) kill() {
	p.once.Do(func() {
		_ = p.cmd.Process.Kill() // or it has ended
		_ = p.in.Close()         // and with it what it is told
	})
}

// wait waits for the end of the process.
func (p *process) wait() *os.ProcessState {
	<-p.gone
	return p.cmd.ProcessState
}

// tail keeps the first of what a process says on standard error: a crash begins with its reason.
type tail struct {
	mu   sync.Mutex
	said []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said = append(t.said, b[:min(len(b), max(0, 8<<10-len(t.said)))]...)
	return len(b), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.said)
}
