package confine

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Program is the program that runs tasks, usually this one. It calls Serve if its first argument is Argument.
type Program struct {
	// Path of the program, and Name that it is called by.
	Path, Name string
	Limits     Limits
}

// Self returns the running program.
func Self(limits Limits) (*Program, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the fleetctl program: %w", err)
	}
	return &Program{Path: path, Name: os.Args[0], Limits: limits}, nil
}

// marker is a variable in the environment of a process that runs a task. Such a process starts no other process.
const marker = "FLEETCTL_CONFINED"

// kept are the variables that tune Go's runtime. A process gets them if they are set, and no other variable.
var kept = []string{"GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GODEBUG", "GOCOVERDIR", "SYSTEMROOT"}

// untuned is the marker's value where nobody has tuned Go's runtime. Then a process collects no garbage while it starts, and sees to
// it afterwards.
const untuned = "untuned"

func environment() []string {
	env := []string{marker + "=1", "TZ=UTC"} // as Flux's controllers have it
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		env = []string{marker + "=" + untuned, "TZ=UTC", "GOGC=off"}
	}
	for _, name := range kept {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// run runs a task in a process. If the process dies of a thing, run begins again without the thing.
func (p *Program) run(ctx context.Context, name string, in any, take func([]byte) error, needs Needs) error {
	if os.Getenv(marker) != "" {
		return errors.New("a process that renders starts no other")
	}
	s := start{
		Task: name, Limits: p.Limits, Read: needs.Read, Write: needs.Write, Refused: map[string]string{},
		Left: together * p.Limits.Time,
	}
	groups := map[string]int{}
	worked := map[string]bool{}
	for deaths := range maxDeaths + 1 {
		if deaths == maxDeaths {
			s.Worked = worked
			s.Enough = fmt.Sprintf("the process that renders ended %d times, each time at something else: nothing more is tried", maxDeaths)
		}
		end := &attempt{program: p, start: &s, needs: needs, active: map[uint64]*activity{}, worked: worked, watch: newStopwatch()}
		err := end.run(ctx, in, take)
		s.Left = max(p.Limits.Time, s.Left-end.watch.worked())
		death, died := errors.AsType[*Death](err)
		if !died || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		at := end.culprit()
		switch {
		case at != nil && s.Refused[at.name] == "":
			death.At, death.Place = at.name, at.place
			s.Refused[at.name] = (&Death{Cause: death.Cause, Place: at.place, Limits: death.Limits, Detail: death.Detail}).Error()
			if groups[at.group]++; at.group != "" && groups[at.group] > 1 {
				s.Refused[at.group] = fmt.Sprintf("%s, as does %s", s.Refused[at.name], death.At)
			}
			s.Alone = true
		case len(end.active) > 1 && !s.Alone:
			s.Alone = true // then it is known which one it was
		default:
			return p.failed(death)
		}
	}
	return p.failed(&Death{
		Cause: Crashed, Limits: p.Limits,
		Detail: fmt.Sprintf("it did so %d times, and once more at what had worked before", maxDeaths),
	})
}

// failed is a death without a single thing as its reason.
func (p *Program) failed(d *Death) error {
	hint := "see docs/troubleshooting.md; FLEETCTL_RENDER_MEMORY and FLEETCTL_RENDER_TIME set other limits"
	return diag.Wrap("render", d, hint)
}

// activity is a thing that a process works on.
type activity struct {
	name, group string
	place       string
	since       time.Time
	many        bool // the place is what it works on now, of many things
}

// attempt is one process.
type attempt struct {
	program *Program
	start   *start
	needs   Needs

	mu     sync.Mutex
	active map[uint64]*activity
	worked map[string]bool // what came to its end, once each is worked on alone
	late   *activity       // that took too long: the process was killed for it
	// Since then it works on nothing that it has named, and calls are what it waits for; silent: it was killed for that.
	since  time.Time
	calls  int
	silent bool
	beyond bool // it took too long for all together: it was killed for that
	// watch measures how long it works on everything.
	watch *stopwatch
}

// culprit returns the thing that the process died of; nil if it is not known.
func (a *attempt) culprit() *activity {
	if a.late != nil {
		return a.late.itself()
	}
	if len(a.active) == 1 {
		for _, one := range a.active {
			return one
		}
	}
	return nil
}

func (a *attempt) run(ctx context.Context, in any, take func([]byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	said := &tail{}
	child, err := spawn(func() *exec.Cmd {
		cmd := exec.Command(a.program.Path) //nolint:gosec,noctx // it is this program; kill ends it
		cmd.Args = []string{a.program.Name, Argument}
		cmd.Env, cmd.Stderr = environment(), said
		return cmd
	})
	if err != nil {
		return fmt.Errorf("start the process that renders: %w", err)
	}
	defer func() {
		child.kill()
		child.wait() // then what it took counts as what this process took, and nothing is left when a command is done
	}()
	stop := context.AfterFunc(ctx, child.kill)
	defer stop()
	to := &writeFrames{to: child.in}
	go func() {
		if a.send(to, in) != nil {
			child.kill() // it would wait for more
		}
	}()
	watched := make(chan struct{})
	defer close(watched)
	ready := make(chan struct{})
	go a.watchTime(child, ready, watched)

	result, failed := a.listen(ctx, bufio.NewReaderSize(child.out, partSize), to, ready, take)
	if result != nil { // it has said how it went
		_ = child.in.Close() // it has nothing more to say
		return failed
	}
	child.kill()
	state := child.wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case a.tooLate():
		limits := a.start.Limits
		switch {
		case a.silent:
			limits.Time *= silence
		case a.beyond:
			limits.Time *= together
		}
		return &Death{Cause: Time, Limits: limits}
	case failed != nil && !errors.Is(failed, io.EOF) && !errors.Is(failed, io.ErrUnexpectedEOF):
		return fmt.Errorf("hear of the process that renders: %w", failed)
	}
	return a.death(state, said.text())
}

// death reads from how a process ended what it ran out of. Go's runtime has no other way to say that than in words.
func (a *attempt) death(state *os.ProcessState, said string) error {
	if state != nil && state.ExitCode() == exitNotStarted {
		return fmt.Errorf("start the process that renders: %s", strings.TrimSpace(said))
	}
	memory := state != nil && (state.ExitCode() == exitMemory || killed(state))
	// The last two are Go's own garbage collector, which does not look whether it was given the memory that it asked for.
	for _, words := range []string{
		"out of memory", "cannot allocate memory", "newosproc", "pthread_create failed",
		"SIGSEGV: segmentation violation\nPC=", "unexpected signal during runtime execution",
	} {
		memory = memory || strings.Contains(said, words)
	}
	if memory {
		return &Death{Cause: Memory, Limits: a.start.Limits}
	}
	detail := "it crashed"
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "panic: ") {
			detail = line
			break
		}
	}
	return &Death{Cause: Crashed, Limits: a.start.Limits, Detail: detail}
}

// send tells the process what to do. Where that is gone it shows in what comes back.
func (a *attempt) send(to *writeFrames, in any) error {
	head, err := encode(a.start)
	if err != nil {
		return err
	}
	if err := to.send(frameStart, head); err != nil {
		return err
	}
	text, err := encode(in)
	if err != nil {
		return err
	}
	return to.sendAll(frameIn, text)
}

// listen takes what the process says, to its end. done is nil where it ended without a word.
func (a *attempt) listen(
	ctx context.Context,
	from *bufio.Reader,
	to *writeFrames,
	ready chan<- struct{},
	take func([]byte) error,
) (done *outcome, failed error) {
	result := whole{most: min(maxResult, a.start.Limits.Memory)}
	isReady := sync.OnceFunc(func() { close(ready) })
	for {
		letter, body, err := readFrame(from)
		if err != nil {
			return nil, err
		}
		switch letter {
		case frameReady:
			isReady()
		case frameBegin, frameMany, frameEnd, frameAt:
			err = a.note(letter, body)
		case frameCall:
			a.heard(+1)
			go func() {
				defer a.heard(-1)
				a.answer(ctx, to, body)
			}()
		case frameOut:
			a.heard(0)
			_, err = result.add(body)
		case frameDone:
			done = &outcome{}
			if err := decode(body, done); err != nil {
				return nil, err
			}
			if failed = done.err(); failed != nil {
				return done, failed
			}
			if err := take(result.text); err != nil {
				return nil, fmt.Errorf("read the result: %w", err)
			}
			return done, nil
		default:
			err = errFrame
		}
		if err != nil {
			return nil, err
		}
	}
}

// note keeps what is worked on.
func (a *attempt) note(letter byte, body []byte) error {
	id, rest, err := number(body)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.since = time.Now()
	if letter == frameEnd {
		if one := a.active[id]; one != nil && a.start.Alone {
			a.worked[one.name] = true
		}
		delete(a.active, id)
		return nil
	}
	if letter == frameAt {
		if one := a.active[id]; one != nil {
			err = one.move(rest)
		}
		return err
	}
	one := &activity{since: time.Now(), many: letter == frameMany}
	if one.name, rest, err = text(rest); err == nil {
		one.group, _, err = text(rest)
	}
	a.active[id] = one
	return err
}

// answer answers a call.
func (a *attempt) answer(ctx context.Context, to *writeFrames, body []byte) {
	id, rest, err := number(body)
	if err != nil {
		return
	}
	name, rest, err := text(rest)
	if err != nil {
		return
	}
	failed, out := "", []byte(nil)
	if do := a.needs.Calls[name]; do == nil {
		failed = fmt.Sprintf("no one answers %q", name)
	} else if out, err = do(ctx, rest); err != nil {
		failed, out = err.Error(), nil
	}
	head := appendText(binary.AppendUvarint(nil, id), failed)
	_ = to.send(frameAnswer, head, out) // a process that is gone needs no answer
}
