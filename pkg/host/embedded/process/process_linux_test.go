package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary is the child, too: its first argument says what it does.
func TestMain(m *testing.M) {
	if os.Getenv("PROCESS_TEST_CHILD") == "" {
		os.Exit(m.Run())
	}
	child(os.Args[1:])
}

// A child's TestMain runs in its first thread: variables get their values there.
var _ = func() bool {
	if os.Getenv("PROCESS_TEST_CHILD") != "" {
		runtime.LockOSThread()
	}
	return true
}()

func child(args []string) {
	switch args[0] {
	case "sleep":
		time.Sleep(time.Hour)
	case "exit":
		fmt.Println("first line")
		fmt.Fprintln(os.Stderr, args[2])
		code, _ := strconv.Atoi(args[1])
		os.Exit(code)
	case "ready": // a moment later
		time.Sleep(100 * time.Millisecond)
		if err := os.WriteFile(args[1], nil, 0o600); err != nil {
			panic(err)
		}
		time.Sleep(time.Hour)
	case "once": // ends the first time, stays the second
		if _, err := os.Stat(args[1]); errors.Is(err, fs.ErrNotExist) {
			_ = os.WriteFile(args[1], nil, 0o600)
			os.Exit(7)
		}
		time.Sleep(time.Hour)
	case "env":
		fmt.Println(strings.Join(os.Environ(), " "))
	case "flood":
		for i := range 2000 {
			fmt.Printf("line %06d of a flood\n", i)
		}
	case "family": // a child that does not listen, in the same group
		cmd := exec.Command("/bin/sh", "-c", "trap '' TERM; echo $$; sleep 1000 & wait; sleep 1000")
		cmd.Stdout = os.Stdout
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		time.Sleep(time.Hour)
	case "asker": // runs the given program for its output
		exe, err := os.Executable()
		if err != nil {
			panic(err)
		}
		out, err := CombinedOutput(exec.CommandContext(context.Background(), exe, args[1:]...))
		fmt.Println(string(out), err)
	case "sleeper": // says its number
		if err := os.WriteFile(args[1], []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
			panic(err)
		}
		time.Sleep(time.Hour)
	case "headless": // ends its first thread, and goes on in another
		go func() {
			if err := os.WriteFile(args[1], nil, 0o600); err != nil {
				panic(err)
			}
			time.Sleep(time.Hour)
		}()
		_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
	case "parent": // starts the given program and prints its number
		s := spec(args[1])
		if len(args) > 2 {
			s.Records, s.Env = args[2], append(s.Env, "MARK="+args[3])
		}
		p, err := Start(context.Background(), s)
		if err != nil {
			panic(err)
		}
		fmt.Println(p.Identity().PID)
		time.Sleep(time.Hour)
	}
	os.Exit(0)
}

func spec(args ...string) Spec {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Spec{Name: "test " + args[0], Path: exe, Args: args, Env: []string{"PROCESS_TEST_CHILD=1"}}
}

func mustStart(t *testing.T, s Spec) *Process {
	t.Helper()
	p, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(context.Background(), 0) })
	return p
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never happened: " + what)
		}
	}
}

// A process that is killed loses its first thread before the others now and then. Until they are gone its files are open, and a disk with
// them on it cannot be taken away.
func TestFirstThreadIsNotTheProcess(t *testing.T) {
	started := filepath.Join(t.TempDir(), "started")
	p := mustStart(t, spec("headless", started))
	t.Cleanup(func() { _ = syscall.Kill(p.Identity().PID, syscall.SIGKILL) }) // Stop would wait for ever for a process that it takes for ended
	waitFor(t, "the first thread has ended", func() bool {
		s, err := readStat(p.Identity().PID)
		if err != nil {
			t.Fatal(err)
		}
		_, err = os.Stat(started)
		return s.state == 'Z' && err == nil
	})
	if !p.Identity().Alive() {
		t.Fatal("it counts as ended while threads of it run")
	}
	if err := p.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if p.Identity().Alive() {
		t.Error("it counts as alive when all of it has ended")
	}
}

func TestExitIsTold(t *testing.T) {
	s := spec("exit", "3", "the last line")
	s.LogFile = filepath.Join(t.TempDir(), "log")
	p := mustStart(t, s)
	<-p.Done()
	var exit *ExitError
	if !errors.As(p.Err(), &exit) || exit.Code != 3 || exit.Lines[1] != "the last line" {
		t.Fatalf("got %v", p.Err())
	}
	if want := "test exit ended with exit code 3: the last line"; p.Err().Error() != want {
		t.Errorf("got %q, want %q", p.Err(), want)
	}
	info, err := os.Stat(s.LogFile)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("log: %v %v", info, err)
	}
	if log, _ := os.ReadFile(s.LogFile); !strings.Contains(string(log), "first line\n") {
		t.Errorf("log: %q", log)
	}
}

func TestNoInheritedEnvironment(t *testing.T) {
	t.Setenv("SECRET_OF_OURS", "x")
	p := mustStart(t, spec("env"))
	<-p.Done()
	if got := strings.Join(p.LastLines(5), " "); got != "PROCESS_TEST_CHILD=1" {
		t.Errorf("environment: %q", got)
	}
}

func TestStartWaitsUntilReady(t *testing.T) {
	flag := filepath.Join(t.TempDir(), "flag")
	s := spec("ready", flag)
	s.Ready = func(context.Context) error { _, err := os.Stat(flag); return err }
	mustStart(t, s)
	if _, err := os.Stat(flag); err != nil {
		t.Error("returned before it was ready")
	}
}

func TestStartFailsWhenItEndsBeforeReady(t *testing.T) {
	s := spec("exit", "4", "no config")
	s.Ready = func(context.Context) error { return errors.New("no answer") }
	_, err := Start(t.Context(), s)
	var exit *ExitError
	if !errors.As(err, &exit) || exit.Code != 4 {
		t.Fatalf("got %v", err)
	}
}

func TestStartStopsWhatIsNeverReady(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	s := spec("sleep")
	s.Ready = func(context.Context) error { return errors.New("no answer") }
	_, err := Start(ctx, s)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer") {
		t.Fatalf("got %v", err)
	}
}

func TestStopTakesTheWholeGroup(t *testing.T) {
	p := mustStart(t, spec("family"))
	waitFor(t, "the grandchild", func() bool { return len(p.LastLines(1)) == 1 })
	pid, err := strconv.Atoi(p.LastLines(1)[0])
	if err != nil {
		t.Fatal(err)
	}
	grandchild, err := Find(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(t.Context(), 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if p.Err() != nil {
		t.Errorf("a wanted end is an error: %v", p.Err())
	}
	waitFor(t, "the end of the grandchild", func() bool { return !grandchild.Alive() })
}

func TestChildDiesWithKilledParent(t *testing.T) {
	parent := mustStart(t, spec("parent", "sleep"))
	waitFor(t, "the child", func() bool { return len(parent.LastLines(1)) == 1 })
	pid, err := strconv.Atoi(parent.LastLines(1)[0])
	if err != nil {
		t.Fatal(err)
	}
	orphan, err := Find(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Identity().Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-parent.Done()
	waitFor(t, "the end of the child", func() bool { return !orphan.Alive() })
}

// What is run for its output only is in no record: with its parent gone, nobody would find it.
func TestCombinedOutputDiesWithKilledParent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	parent := mustStart(t, spec("asker", "sleeper", file))
	var orphan Identity
	waitFor(t, "the child", func() bool {
		raw, _ := os.ReadFile(file)
		pid, err := strconv.Atoi(string(raw))
		if err == nil {
			orphan, err = Find(pid)
		}
		return err == nil
	})
	if err := parent.Identity().Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-parent.Done()
	waitFor(t, "the end of the child", func() bool { return !orphan.Alive() })
}

func TestCombinedOutput(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(ctx context.Context, args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, exe, args...)
		cmd.Env, cmd.WaitDelay = []string{"PROCESS_TEST_CHILD=1"}, time.Second
		out, err := CombinedOutput(cmd)
		return string(out), err
	}
	exit := (*exec.ExitError)(nil)
	if out, err := run(t.Context(), "exit", "3", "second line"); out != "first line\nsecond line\n" || !errors.As(err, &exit) ||
		exit.ExitCode() != 3 {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := CombinedOutput(exec.CommandContext(t.Context(), filepath.Join(t.TempDir(), "missing"))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	begun := time.Now()
	if _, err := run(ctx, "family"); err == nil || time.Since(begun) > 10*time.Second {
		t.Errorf("not ended with its context, after %s: %v", time.Since(begun), err)
	}
}

// The kernel takes the end of the thread that forked for the death of the parent.
func TestChildSurvivesTheThreadThatAskedForIt(t *testing.T) {
	started := make(chan *Process)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		p, err := Start(context.Background(), spec("sleep"))
		if err != nil {
			panic(err)
		}
		started <- p
	}()
	p := <-started
	t.Cleanup(func() { _ = p.Stop(context.Background(), 0) })
	select {
	case <-p.Done():
		t.Fatalf("ended: %v", p.Err())
	case <-time.After(300 * time.Millisecond):
	}
}

func TestIdentityIsNotAStranger(t *testing.T) {
	p := mustStart(t, spec("sleep"))
	id := p.Identity()
	if !id.Alive() {
		t.Fatal("not alive")
	}
	for _, stranger := range []Identity{
		{PID: id.PID, StartTime: id.StartTime + 1, Boot: id.Boot},
		{PID: id.PID, StartTime: id.StartTime, Boot: "another boot"},
	} {
		if err := stranger.Signal(syscall.SIGKILL); !errors.Is(err, ErrGone) {
			t.Errorf("%+v: %v", stranger, err)
		}
	}
	select {
	case <-p.Done():
		t.Fatal("a stranger was killed")
	case <-time.After(50 * time.Millisecond):
	}
	if err := id.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if id.Alive() || !errors.Is(id.Signal(syscall.SIGTERM), ErrGone) {
		t.Error("alive after its end")
	}
}

func TestLogRotates(t *testing.T) {
	s := spec("flood")
	s.LogFile, s.LogLimit = filepath.Join(t.TempDir(), "log"), 20_000
	p := mustStart(t, s)
	<-p.Done()
	for _, file := range []string{s.LogFile, s.LogFile + ".1"} {
		info, err := os.Stat(file)
		if err != nil || info.Size() > s.LogLimit+40<<10 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", file, info, err)
		}
	}
	if got := p.LastLines(1); len(got) != 1 || got[0] != "line 001999 of a flood" {
		t.Errorf("last line: %q", got)
	}
}

func TestLogThatCannotBeWrittenHindersNothing(t *testing.T) {
	l := &logWriter{path: filepath.Join(t.TempDir(), "no", "such", "folder"), limit: 10}
	for range 3 {
		if n, err := l.Write([]byte("abc\n")); n != 4 || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := l.Last(5); len(got) != 3 {
		t.Errorf("lines: %q", got)
	}
}

func TestSupervisorRestarts(t *testing.T) {
	s := Supervise(spec("once", filepath.Join(t.TempDir(), "flag")), SupervisorOptions{BackOff: 10 * time.Millisecond})
	defer func() { _ = s.Stop(context.Background(), 0) }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.AwaitReady(ctx, 0); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the restart", func() bool { return s.Status().Restarts == 1 && s.Status().Phase == PhaseReady })
	if exit := s.Status().LastExit; exit == nil || exit.Code != 7 {
		t.Errorf("last exit: %v", exit)
	}
	id := s.Status().Identity
	if err := s.Stop(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	if id.Alive() || s.Status().Phase != PhaseStopped {
		t.Errorf("after stop: %+v", s.Status())
	}
}

func TestSupervisorBacksOff(t *testing.T) {
	var starts []time.Time
	s := Supervise(spec("exit", "1", "broken"), SupervisorOptions{
		BackOff: 50 * time.Millisecond, MaxBackOff: 100 * time.Millisecond,
		OnChange: func(st Status) {
			if st.Phase == PhaseStarting {
				starts = append(starts, time.Now())
			}
		},
	})
	waitFor(t, "four restarts", func() bool { return s.Status().Restarts >= 4 })
	st := s.Status()
	if err := s.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if st.LastExit == nil || st.LastExit.Lines[1] != "broken" {
		t.Errorf("last exit: %+v", st.LastExit)
	}
	for i, ms := range []int64{50, 100, 100, 100} {
		if i+1 < len(starts) && starts[i+1].Sub(starts[i]).Milliseconds() < ms {
			t.Errorf("restart %d came after %s", i+1, starts[i+1].Sub(starts[i]))
		}
	}
}

func TestSupervisorTellsWhatCannotStart(t *testing.T) {
	s := Supervise(Spec{Name: "x", Path: "/no/such/program"}, SupervisorOptions{})
	defer func() { _ = s.Stop(context.Background(), 0) }()
	err := s.AwaitReady(t.Context(), 1)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestSupervisorRestartOnRequest(t *testing.T) {
	s := Supervise(spec("sleep"), SupervisorOptions{FirstRestartAtOnce: true})
	defer func() { _ = s.Stop(context.Background(), 0) }()
	if err := s.AwaitReady(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	first := s.Status().Identity
	if err := s.Restart(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "another process", func() bool { st := s.Status(); return st.Phase == PhaseReady && st.Identity != first })
}
