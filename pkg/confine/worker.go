package confine

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Argument is the first argument that makes this program a process that runs a task.
const Argument = "confined-task"

// Known is a Task of any types.
type Known interface {
	called() string
	serve(ctx context.Context, in []byte) (out []byte, err error)
}

func (t *Task[In, Out]) called() string { return t.name }

func (t *Task[In, Out]) serve(ctx context.Context, text []byte) ([]byte, error) {
	var in In
	if err := decode(text, &in); err != nil {
		return nil, fmt.Errorf("read what is to be done: %w", err)
	}
	out, err := t.do(ctx, in)
	if err != nil {
		return nil, err
	}
	if text, err = encode(&out); err != nil {
		return nil, fmt.Errorf("write the result: %w", err)
	}
	if len(text) > maxResult {
		return nil, diag.Errorf("ask for a part of the fleet repo: --environment or --cluster, or name files",
			"the result has %d MiB, and %d are the most", len(text)>>20, maxResult>>20)
	}
	return text, nil
}

// Serve is the main function of a process that was started with Argument. It runs the task that the parent names, and returns the exit
// code. The process ends with its parent.
func Serve(tasks ...Known) int {
	to := &writeFrames{to: os.Stdout}
	os.Stdout = os.Stderr // what a library prints is no message
	from := bufio.NewReaderSize(os.Stdin, partSize)
	letter, body, err := readFrame(from)
	if err != nil || letter != frameStart {
		fmt.Fprintln(os.Stderr, "this is a part of fleetctl that it starts itself")
		return exitNotStarted
	}
	var s start
	if err := decode(body, &s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitNotStarted
	}
	refuseNetwork()
	debug.SetTraceback("none") // what a crash says first is what is read
	if err := restrict(&s); err != nil {
		fmt.Fprintf(os.Stderr, "give up what rendering does not need: %v\n", err)
		return exitNotStarted
	}
	collectBelow(s.Limits.Memory)
	if err := to.send(frameReady); err != nil {
		return exitNotStarted
	}
	w := &watch{
		to: to, refused: s.Refused, time: s.Limits.Time, answers: map[uint64]chan answer{}, places: map[uint64]*place{},
		enough: s.Enough, known: s.Worked, left: s.Left, worked: newStopwatch(),
	}
	if s.Alone {
		w.alone = make(chan struct{}, 1)
	}
	in := whole{most: math.MaxInt64} // a parent is trusted
	for done := false; !done; {
		if letter, body, err = readFrame(from); err == nil && letter != frameIn {
			err = errFrame
		}
		if err == nil {
			done, err = in.add(body)
		}
		if err != nil {
			return exitNotStarted
		}
	}
	go w.listen(from)
	go w.tellPlaces()
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), watchKey{}, w))
	defer cancel()
	var out []byte
	err = fmt.Errorf("there is no task %q", s.Task)
	for _, t := range tasks {
		if t.called() == s.Task {
			out, err = t.serve(ctx, in.text)
		}
	}
	done, failed := encode(outcomeOf(err))
	if err == nil {
		failed = errors.Join(failed, to.sendAll(frameOut, out))
	}
	if failed != nil || to.send(frameDone, done) != nil {
		return exitNotStarted
	}
	return 0
}

// Exit codes of a process that dies by itself, besides those of Go's runtime.
const (
	exitNotStarted = 85
	exitMemory     = 86
)

// watch is what a process tells of itself, and asks.
type watch struct {
	to      *writeFrames
	refused map[string]string
	time    time.Duration
	alone   chan struct{}
	last    atomic.Uint64

	mu      sync.Mutex
	answers map[uint64]chan answer
	places  map[uint64]*place

	// enough is why it works on nothing but what is known to work; "" as a rule.
	enough string
	known  map[string]bool
	// left is how long all things may take together, worked how long they took, and longest which of them took longest.
	left    time.Duration
	worked  *stopwatch
	longest struct {
		name string
		took time.Duration
	}

	// calls are answered in this process, where it is the one that started the task.
	calls map[string]func(ctx context.Context, in []byte) ([]byte, error)
}

type answer struct {
	failed string
	body   []byte
}

func (w *watch) begin(name, group string, at func() string) (end func(), err error) {
	return w.beginAs(frameBegin, name, group, at)
}

// beginAs tells what is worked on by a frame of that letter.
func (w *watch) beginAs(letter byte, name, group string, at func() string) (end func(), err error) {
	if w.to == nil {
		return func() {}, nil
	}
	for _, known := range []string{name, group} {
		if why := w.refused[known]; known != "" && why != "" {
			return func() {}, errors.New(why)
		}
	}
	if w.enough != "" && !w.known[name] {
		return func() {}, errors.New(w.enough)
	}
	release := func() {
		if w.alone != nil {
			<-w.alone
		}
	}
	if w.alone != nil {
		w.alone <- struct{}{}
	}
	if err := w.outOfTime(); err != nil {
		release()
		return func() {}, err
	}
	began, id := time.Now(), w.last.Add(1)
	body := appendText(appendText(binary.AppendUvarint(nil, id), name), group)
	if err := w.to.send(letter, body); err != nil {
		return func() {}, err
	}
	w.place(id, at)
	return func() {
		w.place(id, nil)
		_ = w.to.send(frameEnd, binary.AppendUvarint(nil, id)) // without a parent the process ends
		w.ended(name, time.Since(began))
		release()
	}, nil
}

// ended notes how long a thing took.
func (w *watch) ended(name string, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if took > w.longest.took {
		w.longest.name, w.longest.took = name, took
	}
}

// outOfTime says that all things together have taken what they may, and which of them took longest.
func (w *watch) outOfTime() error {
	if w.worked.worked() <= w.left {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	most := ""
	if w.longest.name != "" {
		most = fmt.Sprintf(", %s alone %s", w.longest.name, w.longest.took.Round(time.Second/10))
	}
	return fmt.Errorf("out of time: all that came before it took longer than %s together%s", together*w.time, most)
}

func (w *watch) call(ctx context.Context, name string, in []byte) ([]byte, error) {
	if w.to == nil {
		do := w.calls[name]
		if do == nil {
			return nil, fmt.Errorf("no one answers %q", name)
		}
		return do(ctx, in)
	}
	id, got := w.last.Add(1), make(chan answer, 1)
	w.mu.Lock()
	w.answers[id] = got
	w.mu.Unlock()
	w.worked.wait(+1)
	defer w.worked.wait(-1)
	if err := w.to.send(frameCall, appendText(binary.AppendUvarint(nil, id), name), in); err != nil {
		return nil, err
	}
	select {
	case a := <-got:
		if a.failed != "" {
			return nil, errors.New(a.failed)
		}
		return a.body, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// listen takes what the parent sends. Where the parent is gone there is nothing left to do.
func (w *watch) listen(from *bufio.Reader) {
	for {
		letter, body, err := readFrame(from)
		if err != nil {
			os.Exit(exitNotStarted)
		}
		if letter == frameAnswer {
			w.answered(body)
		}
	}
}

// answered hands an answer to who asked.
func (w *watch) answered(body []byte) {
	id, rest, err := number(body)
	if err != nil {
		return
	}
	failed, rest, err := text(rest)
	if err != nil {
		return
	}
	w.mu.Lock()
	got := w.answers[id]
	delete(w.answers, id)
	w.mu.Unlock()
	if got != nil {
		got <- answer{failed, rest}
	}
}

var errNetwork = errors.New("what renders a fleet repo has no network")

// refusing is an HTTP transport that refuses every request.
type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errNetwork }

// refuseNetwork makes Go's own HTTP clients refuse every request, on every system.
func refuseNetwork() {
	http.DefaultTransport = refusing{}
	http.DefaultClient = &http.Client{Transport: refusing{}}
	net.DefaultResolver = &net.Resolver{
		PreferGo: true,
		Dial:     func(context.Context, string, string) (net.Conn, error) { return nil, errNetwork },
	}
}
