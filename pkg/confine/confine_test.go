package confine_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

var (
	echo    = confine.New("echo", func(ctx context.Context, in string) (string, error) { return in, nil })
	failing = confine.New("failing", func(context.Context, string) (string, error) { return "", diag.Usage("try again", "no good") })
	asking  = confine.New("asking", func(ctx context.Context, in string) (string, error) {
		out, err := confine.Call(ctx, "question", []byte(in))
		return string(out), err
	})
	trying = confine.New("trying", try)
	// working does what it is told for each thing, in order, and says what it could not work on.
	working = confine.New("working", func(ctx context.Context, things []thing) ([]string, error) {
		var out []string
		for _, t := range things {
			out = append(out, t.work(ctx))
		}
		return out, nil
	})
	waiting = confine.New("waiting", func(ctx context.Context, in string) (string, error) {
		if _, err := confine.Call(ctx, "pid", []byte(strconv.Itoa(os.Getpid()))); err != nil {
			return "", err
		}
		select {}
	})
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == confine.Argument {
		os.Exit(confine.Serve(echo, failing, asking, trying, working, workingOnMany, waiting))
	}
	if name := os.Getenv("CONFINE_TEST_LACKING"); name != "" {
		os.Exit(lack(name))
	}
	if dir := os.Getenv("CONFINE_TEST_PARENT"); dir != "" {
		os.Exit(parent(dir))
	}
	os.Exit(m.Run())
}

// limits leave room for the test's own program.
var limits = confine.Limits{Memory: 768 << 20, Time: time.Minute}

func inside(t *testing.T, l confine.Limits) context.Context {
	t.Helper()
	p, err := confine.Self(l)
	if err != nil {
		t.Fatal(err)
	}
	return confine.With(t.Context(), p)
}

func TestTask(t *testing.T) {
	large := strings.Repeat("x", 3<<20)
	for name, ctx := range map[string]context.Context{"here": t.Context(), "in a process of its own": inside(t, limits)} {
		t.Run(name, func(t *testing.T) {
			if out, err := echo.Run(ctx, large, confine.Needs{}); err != nil || out != large {
				t.Errorf("%d bytes came back, %v", len(out), err)
			}
			_, err := failing.Run(ctx, "", confine.Needs{})
			if err == nil || err.Error() != "no good" || diag.Code(err) != diag.ExitUsage || diag.Hint(err) != "try again" {
				t.Errorf("the error is %v", err)
			}
			answer := func(_ context.Context, in []byte) ([]byte, error) { return append(in, " or not"...), nil }
			needs := confine.Needs{Calls: map[string]func(context.Context, []byte) ([]byte, error){"question": answer}}
			if out, err := asking.Run(ctx, "to be", needs); err != nil || out != "to be or not" {
				t.Errorf("the answer is %q, %v", out, err)
			}
			if _, err := asking.Run(ctx, "to be", confine.Needs{}); err == nil {
				t.Error("somebody answers")
			}
		})
	}
}

// attempts are what a process is to try.
type attempts struct {
	Program, Address, Outside, Inside, Kept string
	Inherited                               int // a file that is open where fleetctl is started, and has Outside's content; 0: none
}

// try does what nothing that renders may, and says what worked.
func try(_ context.Context, a attempts) ([]string, error) {
	var worked []string
	note := func(what string, err error) {
		if err == nil {
			worked = append(worked, what)
		}
	}
	for _, v := range os.Environ() {
		if strings.Contains(v, "SECRET") || strings.HasPrefix(v, "PATH=") || strings.HasPrefix(v, "HOME=") {
			worked = append(worked, "environment "+v)
		}
	}
	_, err := exec.LookPath("sh")
	note("look a program up", err)
	note("run a program", exec.Command(a.Program).Run())
	_, err = http.Get("http://" + a.Address) //nolint:bodyclose // there is none
	note("HTTP", err)
	_, err = (&http.Client{Transport: &http.Transport{}}).Get("http://" + a.Address) //nolint:bodyclose // there is none
	note("HTTP with a transport of its own", err)
	_, err = net.Dial("tcp", a.Address)
	note("connect", err)
	_, err = net.Listen("tcp", "127.0.0.1:0")
	note("listen", err)
	_, err = net.LookupHost("localhost.example.com")
	note("DNS", err)
	_, err = os.ReadFile(a.Outside)
	note("read outside", err)
	note("write outside", os.WriteFile(a.Outside, []byte("x"), 0o600))
	note("write where it may read", os.WriteFile(a.Inside, []byte("x"), 0o600))
	if _, err := os.ReadFile(a.Inside); err != nil {
		worked = append(worked, "what it needs it cannot read: "+err.Error())
	}
	if err := os.WriteFile(a.Kept, []byte("x"), 0o600); err != nil {
		worked = append(worked, "what it keeps it cannot write: "+err.Error())
	}
	if a.Inherited != 0 {
		text := make([]byte, len("private"))
		if _, err := os.NewFile(uintptr(a.Inherited), "inherited").Read(text); err == nil && string(text) == "private" {
			worked = append(worked, "read what was open")
		}
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err == nil && len(fds) > 0 {
		worked = append(worked, "read /proc")
	}
	return worked, nil
}

func TestReachesNothing(t *testing.T) {
	t.Setenv("MY_SECRET", "hunter2")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	readable, writable, other := t.TempDir(), t.TempDir(), t.TempDir()
	a := attempts{
		Program: os.Args[0], Address: listener.Addr().String(), Outside: filepath.Join(other, "x"), Inside: filepath.Join(readable, "x"),
		Kept: filepath.Join(writable, "x"),
	}
	for _, name := range []string{a.Outside, a.Inside} {
		if err := os.WriteFile(name, []byte("private"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a.Inherited = inheritable(t, a.Outside)
	worked, err := trying.Run(inside(t, limits), a, confine.Needs{Read: []string{readable}, Write: []string{writable}})
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range worked {
		t.Errorf("it can: %s", what)
	}
}

// thing is something to work on: it takes memory, or time, or ends the process, or is fine.
type thing struct{ Name, Group, Trouble, Place string }

func (th thing) work(ctx context.Context) string {
	end, err := confine.Watch(ctx)(th.Name, th.Group, func() string { return th.Place })
	defer end()
	if err != nil {
		return th.Name + ": " + err.Error()
	}
	return th.do()
}

func (th thing) do() string {
	switch th.Trouble {
	case "memory":
		for {
			hoard = append(hoard, make([]byte, 64<<20))
		}
	case "time":
		for i := 0; ; i++ {
			if i < 0 {
				break
			}
		}
	case "slow":
		<-time.After(800 * time.Millisecond)
	case "exit":
		os.Exit(7)
	case "stack":
		return fmt.Sprint(deep(1))
	}
	return th.Name + " is fine"
}

// hoard is what is not given back.
var hoard [][]byte

func deep(n int) int {
	if n < 0 { // never
		return 0
	}
	return deep(n+1) + 1
}

func TestTroubleIsNamed(t *testing.T) {
	l := limits
	l.Time = 5 * time.Second
	out, err := working.Run(inside(t, l), []thing{
		{Name: "a"},
		{Name: "b", Group: "chart x", Trouble: "memory"},
		{Name: "c"},
		{Name: "d", Trouble: "time", Place: "function x"},
		{Name: "e", Group: "chart x", Trouble: "memory"},
		{Name: "f", Group: "chart x", Trouble: "memory"},
		{Name: "g", Trouble: "stack"},
		{Name: "h"},
	}, confine.Needs{})
	if err != nil {
		t.Fatal(err)
	}
	const memory = "out of memory: it takes more than 768 MiB"
	for i, want := range []string{
		"a is fine", "b: " + memory, "c is fine", "d: out of time: it takes longer than 5s, in function x",
		"e: " + memory, "f: " + memory, "g: ", "h is fine",
	} {
		if !strings.HasPrefix(out[i], want) {
			t.Errorf("got %q, want %q", out[i], want)
		}
	}
}

// Things that each keep to their time do not take longer than all may together, however many there are. One that is killed takes of that,
// too.
func TestTimeOfAllTogether(t *testing.T) {
	l := limits
	l.Time = time.Second
	things := []thing{{Name: "killed", Trouble: "time"}, {Name: "first"}}
	for i := range 100 {
		things = append(things, thing{Name: fmt.Sprint("slow ", i), Trouble: "slow"})
	}
	out, err := working.Run(inside(t, l), things, confine.Needs{})
	if err != nil {
		t.Fatal(err)
	}
	if out[0] != "killed: out of time: it takes longer than 1s" || out[1] != "first is fine" || out[2] != "slow 0 is fine" {
		t.Errorf("the first are %q", out[:3])
	}
	last := out[len(out)-1]
	if !strings.HasPrefix(last, "slow 99: out of time: all that came before it took longer than 10s together, slow ") ||
		!strings.Contains(last, " alone ") {
		t.Errorf("the last is %q", last)
	}
}

// Beside more things to die of than are tried, what works is worked on, the first of the others are named with what they died of, and of
// the last it is said that they were not tried.
func TestTroubleWithoutEnd(t *testing.T) {
	things := []thing{{Name: "fine"}}
	for i := range 20 {
		things = append(things, thing{Name: fmt.Sprint("bad ", i), Trouble: "exit"})
	}
	out, err := working.Run(inside(t, limits), things, confine.Needs{})
	if err != nil {
		t.Fatal(err)
	}
	const crashed = ": the process that renders ended: it crashed"
	if out[0] != "fine is fine" || out[1] != "bad 0"+crashed || out[12] != "bad 11"+crashed {
		t.Errorf("the first are %q", out[:13])
	}
	for _, got := range out[13:] {
		if !strings.HasSuffix(got, ": the process that renders ended 12 times, each time at something else: nothing more is tried") {
			t.Errorf("got %q", got)
		}
	}
}

func TestTroubleAtNothing(t *testing.T) {
	var death *confine.Death
	_, err := working.Run(inside(t, limits), []thing{{Name: ""}}, confine.Needs{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(inside(t, limits))
	needs := confine.Needs{
		Calls: map[string]func(context.Context, []byte) ([]byte, error){"pid": func(_ context.Context, in []byte) ([]byte, error) {
			pid, err := strconv.Atoi(string(in))
			if err != nil {
				return nil, err
			}
			p, err := os.FindProcess(pid)
			if err != nil {
				return nil, err
			}
			return nil, p.Kill()
		}},
	}
	if _, err := waiting.Run(ctx, "", needs); !errors.As(err, &death) || death.Cause != confine.Memory {
		t.Errorf("a process that is killed: %v", err)
	}
	needs.Calls["pid"] = func(context.Context, []byte) ([]byte, error) {
		cancel()
		return nil, nil
	}
	if _, err := waiting.Run(ctx, "", needs); !errors.Is(err, context.Canceled) {
		t.Errorf("a process that is not wanted any more: %v", err)
	}
}

// A process that works on nothing that it names is given its time, too; what it waits for is not its fault.
func TestTroubleOutsideOfAllThings(t *testing.T) {
	short := limits
	short.Time = 2 * time.Second // five times that is what there is
	answering := func(name string, after time.Duration) confine.Needs {
		return confine.Needs{Calls: map[string]func(context.Context, []byte) ([]byte, error){name: func(context.Context, []byte) ([]byte, error) {
			<-time.After(after)
			return []byte("at last"), nil
		}}}
	}
	t.Run("never ends", func(t *testing.T) {
		t.Parallel()
		var death *confine.Death
		if _, err := waiting.Run(inside(t, short), "", answering("pid", 0)); !errors.As(err, &death) || death.Cause != confine.Time ||
			death.At != "" || diag.Hint(err) == "" {
			t.Errorf("it ended with %v", err)
		}
	})
	t.Run("waits for an answer", func(t *testing.T) {
		t.Parallel()
		if out, err := asking.Run(inside(t, short), "", answering("question", 7*short.Time)); err != nil || out != "at last" {
			t.Errorf("it ended with %q, %v", out, err)
		}
	})
}

// parent runs a task that never ends, and says in a file which process does it.
func parent(dir string) int {
	p, err := confine.Self(limits)
	if err != nil {
		return 1
	}
	write := func(_ context.Context, in []byte) ([]byte, error) {
		if err := os.WriteFile(filepath.Join(dir, "new"), in, 0o600); err != nil {
			return nil, err
		}
		return nil, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "pid"))
	}
	_, _ = waiting.Run(confine.With(context.Background(), p), "",
		confine.Needs{Calls: map[string]func(context.Context, []byte) ([]byte, error){"pid": write}})
	return 1
}
