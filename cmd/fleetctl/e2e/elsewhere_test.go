//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// elsewhere is a separate network on this machine, with a loopback alone. By their ports, programs in it are on another machine.
type elsewhere struct{ ns *os.File }

// newElsewhere makes a separate network. Its free ports differ from the free ports of this machine, so that this machine can forward each.
func newElsewhere(t *testing.T) *elsewhere {
	t.Helper()
	e := &elsewhere{}
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace (needs root): %w", err)
		}
		var err error
		if e.ns, err = os.Open("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		if err := raiseLoopback(); err != nil {
			return err
		}
		return os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte("61000 65000"), 0)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.ns.Close() })
	return e
}

// onThread runs do on a thread that ends with it, and so may be changed at will. The first thread never ends, and what /proc/self says is
// about that one: it stays as it is.
func onThread(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			defer runtime.UnlockOSThread()
			done <- onThread(do) // on another one, for this one is taken
			return
		}
		done <- do() // never unlocked: the thread is nothing that another goroutine could use
	}()
	return <-done
}

func (e *elsewhere) do(do func() error) error {
	return onThread(func() error {
		if err := unix.Setns(int(e.ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter the network: %w", err)
		}
		return do()
	})
}

func raiseLoopback() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(socket) }()
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(socket), unix.SIOCSIFFLAGS, uintptr(unsafe.Pointer(request))); errno != 0 {
		return fmt.Errorf("raise loopback: %w", errno)
	}
	return nil
}

// run runs a program there.
func (e *elsewhere) run(cmd *exec.Cmd) error {
	if err := e.do(cmd.Start); err != nil {
		return err
	}
	return cmd.Wait()
}

// leadIn makes an address of this network reachable there, leadOut one of there reachable here.
func (e *elsewhere) leadIn(t *testing.T, address string) {
	t.Helper()
	var l net.Listener
	if err := e.do(func() (err error) { l, err = net.Listen("tcp", address); return err }); err != nil {
		t.Fatal(err)
	}
	lead(t, l, func() (net.Conn, error) { return net.Dial("tcp", address) })
}

func (e *elsewhere) leadOut(t *testing.T, address string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	lead(t, l, func() (conn net.Conn, err error) {
		err = e.do(func() error { conn, err = net.Dial("tcp", address); return err })
		return conn, err
	})
}

// lead passes on what comes in until the test ends.
func lead(t *testing.T, l net.Listener, dial func() (net.Conn, error)) {
	var all sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	keep := func(c net.Conn) {
		mu.Lock()
		defer mu.Unlock()
		open[c] = true
	}
	end := func(c net.Conn) {
		mu.Lock()
		defer mu.Unlock()
		delete(open, c)
		_ = c.Close()
	}
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					t.Errorf("pass on connections to %s: %v", l.Addr(), err)
				}
				return
			}
			keep(in)
			all.Go(func() {
				defer end(in)
				out, err := dial()
				if err != nil {
					return // nobody listens there: who asked sees that the connection ends
				}
				keep(out)
				defer end(out)
				one := make(chan struct{})
				go func() {
					defer close(one)
					_, _ = io.Copy(out, in)
					_ = out.(*net.TCPConn).CloseWrite()
				}()
				_, _ = io.Copy(in, out)
				_ = in.(*net.TCPConn).CloseWrite()
				<-one
			})
		}
	})
}
