package privatenet_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/privatenet"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// The test program is also the helper, and children that listen and ask.
func TestMain(m *testing.M) {
	if privatenet.IsHelper() {
		if err := privatenet.Help(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 4 && os.Args[1] == "child" {
		child(os.Args[2], os.Args[3])
	}
	os.Exit(m.Run())
}

// child serves HTTP at an address, or says what a URL answers.
func child(does, at string) {
	if does == "serve" {
		l, err := net.Listen("tcp", at)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("listens")
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(bytes.Repeat([]byte("secret"), 1<<16))
		}))
		os.Exit(1)
	}
	if does == "ask udp" {
		conn, err := net.Dial("udp", at)
		if err == nil {
			_, err = conn.Write([]byte("hello"))
		}
		fmt.Println("asked:", err)
		os.Exit(0)
	}
	resp, err := http.Get("http://" + at)
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(0)
	}
	content, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	fmt.Printf("got %d bytes, %v: %.6s\n", len(content), err, content)
	os.Exit(0)
}

const patience = time.Minute

// network is one for the test, whose children are private.
func network(t *testing.T, o privatenet.Options) *privatenet.Network {
	t.Helper()
	if o.Log == nil {
		o.Log = t.Logf
	}
	n, err := privatenet.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// run starts a child; its output goes to a file.
func run(t *testing.T, does, at string) (*process.Process, string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	p, err := process.Start(t.Context(), process.Spec{Name: does, Path: exe, Args: []string{"child", does, at}, LogFile: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(context.Background(), 0) })
	return p, log
}

// serve starts a child that listens, and waits until it does.
func serve(t *testing.T, at string) *process.Process {
	t.Helper()
	p, log := run(t, "serve", at)
	for deadline := time.Now().Add(patience); ; {
		select {
		case <-p.Done():
			t.Fatalf("serve %s: %v", at, p.LastLines(5))
		case <-time.After(5 * time.Millisecond):
		}
		if content, _ := os.ReadFile(log); strings.Contains(string(content), "listens") {
			return p
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not served", at)
		}
	}
}

// ask is what a child gets from an address.
func ask(t *testing.T, does, at string) string {
	t.Helper()
	p, _ := run(t, does, at)
	select {
	case <-p.Done():
	case <-time.After(patience):
		t.Fatalf("nobody answers at %s", at)
	}
	return strings.Join(p.LastLines(3), "\n")
}

// freePort is one that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func get(dial func(ctx context.Context, network, address string) (net.Conn, error), at string) (string, error) {
	client := http.Client{Timeout: patience, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	resp, err := client.Get("http://" + at)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	return string(content), err
}

// TestWhatAChildListensOn is there for other children and for us, on each address that a program may choose, and for nobody else.
func TestWhatAChildListensOn(t *testing.T) {
	n := network(t, privatenet.Options{})
	for _, host := range []string{"127.0.0.1", "localhost", "", "0.0.0.0", "[::]", "[::1]"} {
		port := strconv.Itoa(freePort(t))
		asked := "127.0.0.1:" + port
		if host == "[::1]" {
			asked = host + ":" + port
		}
		p := serve(t, host+":"+port)
		if got := ask(t, "ask", asked); !strings.HasPrefix(got, "got 393216 bytes, <nil>: secret") {
			t.Errorf("%q: another child: %s", host, got)
		}
		if got, err := get(n.Dial, asked); err != nil || len(got) != 6<<16 {
			t.Errorf("%q: this process: %d bytes, %v", host, len(got), err)
		}
		for _, address := range append(ownAddresses(t), asked[:strings.LastIndex(asked, ":")]) {
			if conn, err := net.Dial("tcp", net.JoinHostPort(strings.Trim(address, "[]"), port)); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("%q: somebody else at %s: %v, %v", host, address, conn, err)
			}
		}
		if listensOnMachine(t, port) {
			t.Errorf("%q: the machine's table of sockets has it", host)
		}
		if err := p.Stop(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if got := ask(t, "ask", asked); !strings.Contains(got, "connection refused") {
			t.Errorf("%q: when it has ended: %s", host, got)
		}
		// The same port again. It ends as well: the machine does not know that the port is taken, and may choose it for the next one.
		if err := serve(t, host+":"+port).Stop(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
}

// ownAddresses are the addresses of this machine.
func ownAddresses(t *testing.T) (own []string) {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range all {
		if n, ok := each.(*net.IPNet); ok && !n.IP.IsLinkLocalUnicast() {
			own = append(own, n.IP.String())
		}
	}
	return own
}

// listensOnMachine looks at what any user of the machine can read.
func listensOnMachine(t *testing.T, port string) bool {
	t.Helper()
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(table)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			if fields := strings.Fields(s.Text()); len(fields) > 3 && fields[3] == "0A" &&
				strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", number)) {
				return true
			}
		}
	}
	return false
}

// TestWhatIsOutside reaches a child as ever: what listens on the machine's loopback and addresses, TCP or not.
func TestWhatIsOutside(t *testing.T) {
	network(t, privatenet.Options{})
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "outside") }))
	defer outside.Close()
	if got := ask(t, "ask", strings.TrimPrefix(outside.URL, "http://")); got != "got 7 bytes, <nil>: outsid" {
		t.Error(got)
	}
	datagrams, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer datagrams.Close()
	// A datagram to a port that is private for TCP.
	serve(t, datagrams.LocalAddr().String())
	if got := ask(t, "ask udp", datagrams.LocalAddr().String()); got != "asked: <nil>" {
		t.Error(got)
	}
	buffer := make([]byte, 5)
	if err := datagrams.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := datagrams.ReadFrom(buffer); err != nil || string(buffer) != "hello" {
		t.Errorf("%q, %v", buffer, err)
	}
}

// TestOpenPorts: open ports are those of the machine's loopback, for children and for other programs of the machine, but not at the
// machine's other addresses.
func TestOpenPorts(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "", "0.0.0.0", "[::]", "localhost"} {
		t.Run(host, func(t *testing.T) { openPort(t, host) })
	}
}

func openPort(t *testing.T, host string) {
	port := freePort(t)
	n := network(t, privatenet.Options{Open: func(p int) bool { return p == port }})
	at := "127.0.0.1:" + strconv.Itoa(port)
	serve(t, host+":"+strconv.Itoa(port))
	for _, address := range ownAddresses(t) {
		if ip := net.ParseIP(address); ip.IsLoopback() {
			continue
		}
		if conn, err := net.Dial("tcp", net.JoinHostPort(address, strconv.Itoa(port))); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("somebody else at %s: %v, %v", address, conn, err)
		}
	}
	if got, err := get((&net.Dialer{}).DialContext, at); err != nil || !strings.HasPrefix(got, "secret") {
		t.Errorf("somebody else: %d bytes, %v", len(got), err)
	}
	if got, err := get(n.Dial, at); err != nil || !strings.HasPrefix(got, "secret") {
		t.Errorf("this process: %d bytes, %v", len(got), err)
	}
	if got := ask(t, "ask", at); !strings.Contains(got, "secret") {
		t.Errorf("a child: %s", got)
	}
}

// TestClaimedPort is one that only a child may serve: who listens there on the machine before it does is not asked.
func TestClaimedPort(t *testing.T) {
	n := network(t, privatenet.Options{})
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "stranger") }))
	defer stranger.Close()
	at := stranger.Listener.Addr().String()
	n.Claim(stranger.Listener.Addr().(*net.TCPAddr).Port)
	if got := ask(t, "ask", at); !strings.Contains(got, "connection refused") {
		t.Errorf("a child: %s", got)
	}
	if got, err := get(n.Dial, at); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("this process: %q, %v", got, err)
	}
	serve(t, at)
	if got := ask(t, "ask", at); !strings.Contains(got, "secret") {
		t.Errorf("a child: %s", got)
	}
}

// TestTaken: a port is taken only if a child listens on it in the private network. A port on which the machine listens is not, and neither
// are ports that were looked at while children were started.
func TestTaken(t *testing.T) {
	n := network(t, privatenet.Options{})
	stranger, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	port := stranger.Addr().(*net.TCPAddr).Port
	want := func(when string, inside, outside bool) {
		t.Helper()
		if got := n.Taken(port); got != inside {
			t.Errorf("%s: taken in the private network: %v", when, got)
		}
		if got := (privatenet.Machine{}).Taken(port); got != outside {
			t.Errorf("%s: taken on the machine: %v", when, got)
		}
	}
	want("a stranger listens on the machine", false, true)
	serve(t, stranger.Addr().String())
	want("a child listens as well", true, true)
	n.Open(port)
	want("the port stays on the machine", true, true)
	if err := stranger.Close(); err != nil {
		t.Fatal(err)
	}
	want("the stranger is gone", false, false)

	for _, at := range []string{":0", "[::1]:0", "0.0.0.0:0"} {
		l, err := net.Listen("tcp", at)
		if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) {
			continue // a machine without IPv6
		}
		if err != nil {
			t.Fatal(err)
		}
		port = l.Addr().(*net.TCPAddr).Port
		want("somebody listens at "+at, false, true)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTakenWhileChildrenStart: the look at a port leaves nothing behind in a child that is being started.
func TestTakenWhileChildrenStart(t *testing.T) {
	n := network(t, privatenet.Options{})
	port := freePort(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan error)
	go func() {
		defer close(started)
		for range 20 {
			if err := exec.Command(program, "-test.run=^$").Run(); err != nil {
				started <- err
				return
			}
		}
	}()
	for looks := 0; ; looks++ {
		select {
		case err := <-started:
			if err != nil {
				t.Error(err)
			}
			t.Logf("%d looks", looks)
			return
		default:
		}
		if n.Taken(port) || (privatenet.Machine{}).Taken(port) {
			t.Fatalf("look %d at a port that nobody has found it taken", looks)
		}
	}
}

// TestLostHelper is told of, nobody listens in the open because of it, and a new network takes its place.
func TestLostHelper(t *testing.T) {
	n, err := privatenet.Start(t.Context(), privatenet.Options{Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	at := "127.0.0.1:" + strconv.Itoa(freePort(t))
	serve(t, at)
	if err := n.KillHelper(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-n.Lost():
	case <-time.After(patience):
		t.Fatal("nobody is told")
	}
	if _, err := get(n.Dial, at); err == nil {
		t.Error("somebody answers")
	}
	if got := ask(t, "serve", "127.0.0.1:"+strconv.Itoa(freePort(t))); !strings.Contains(got, "network is down") {
		t.Errorf("a child that listens: %s", got)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	again := network(t, privatenet.Options{})
	at = "127.0.0.1:" + strconv.Itoa(freePort(t))
	serve(t, at)
	if got, err := get(again.Dial, at); err != nil || !strings.HasPrefix(got, "secret") {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestOneAtATime: a second network would take the children of the first.
func TestOneAtATime(t *testing.T) {
	n := network(t, privatenet.Options{})
	if _, err := privatenet.Start(t.Context(), privatenet.Options{}); err == nil || errors.Is(err, privatenet.ErrUnsupported) {
		t.Errorf("a second one: %v", err)
	}
	at := "127.0.0.1:" + strconv.Itoa(freePort(t))
	serve(t, at)
	if _, err := get(n.Dial, at); err != nil {
		t.Error(err)
	}
}
