package steps

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/progress"
)

// order remembers in which order steps began and ended.
type order struct {
	mu  sync.Mutex
	log []string
}

func (o *order) add(s string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.log = append(o.log, s)
}

func (o *order) step(name string, needs ...string) Step {
	return Step{Name: name, Needs: needs, Run: func(context.Context, func(string)) error {
		o.add("begin " + name)
		o.add("end " + name)
		return nil
	}}
}

func (o *order) index(t *testing.T, what string) int {
	t.Helper()
	i := slices.Index(o.log, what)
	if i < 0 {
		t.Fatalf("%q did not happen: %v", what, o.log)
	}
	return i
}

func TestRunHonoursNeeds(t *testing.T) {
	o := &order{}
	err := Run(t.Context(), progress.Discard, []Step{o.step("a"), o.step("b", "a"), o.step("c", "a"), o.step("d", "b", "c")})
	if err != nil {
		t.Fatal(err)
	}
	for _, pair := range [][2]string{{"end a", "begin b"}, {"end a", "begin c"}, {"end b", "begin d"}, {"end c", "begin d"}} {
		if o.index(t, pair[0]) > o.index(t, pair[1]) {
			t.Errorf("%s after %s: %v", pair[0], pair[1], o.log)
		}
	}
}

func TestRunSideBySide(t *testing.T) {
	// Each waits for the other: only side by side can both end.
	a, b := make(chan struct{}), make(chan struct{})
	meet := func(mine, other chan struct{}) func(context.Context, func(string)) error {
		return func(ctx context.Context, _ func(string)) error {
			close(mine)
			select {
			case <-other:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := Run(ctx, progress.Discard, []Step{{Name: "a", Run: meet(a, b)}, {Name: "b", Run: meet(b, a)}})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRunFirstFailureCancelsTheOthers(t *testing.T) {
	broken := errors.New("broken")
	after := false
	err := Run(t.Context(), progress.Discard, []Step{
		{Name: "fail", Run: func(context.Context, func(string)) error { return diag.Errorf("mend it", "it is %w", broken) }},
		{Name: "wait", Run: func(ctx context.Context, _ func(string)) error { <-ctx.Done(); return ctx.Err() }},
		{Name: "after", Needs: []string{"fail"}, Run: func(context.Context, func(string)) error { after = true; return nil }},
	})
	if !errors.Is(err, broken) || err.Error() != "fail: it is broken" || diag.Hint(err) != "mend it" {
		t.Errorf("got %v with hint %q", err, diag.Hint(err))
	}
	if after {
		t.Error("a step ran although what it needs had failed")
	}
}

func TestRunStepTimeout(t *testing.T) {
	err := Run(t.Context(), progress.Discard, []Step{{
		Name: "slow", Timeout: 10 * time.Millisecond, Hint: "look at it",
		Run: func(ctx context.Context, _ func(string)) error { <-ctx.Done(); return ctx.Err() },
	}})
	var timeout *timeoutError
	if !errors.As(err, &timeout) || !strings.Contains(err.Error(), "slow: gave up after") || diag.Hint(err) != "look at it" {
		t.Errorf("got %v with hint %q", err, diag.Hint(err))
	}
}

func TestRunSkipsWhatIsDone(t *testing.T) {
	ran := false
	steps := []Step{
		{
			Name: "a",
			Done: func(context.Context) (string, bool, error) { return "there", true, nil },
			Run:  func(context.Context, func(string)) error { ran = true; return nil },
		},
		{Name: "b", Needs: []string{"a"}, Run: func(context.Context, func(string)) error { return NothingToDo("all is well") }},
	}
	r := &recorder{}
	if err := Run(t.Context(), r, steps); err != nil || ran {
		t.Errorf("err %v, ran %v", err, ran)
	}
	if want := []string{"skip a: there", "skip b: all is well"}; !slices.Equal(r.log, want) {
		t.Errorf("told %v, want %v", r.log, want)
	}
}

func TestRunTellsOneFailure(t *testing.T) {
	waits := make(chan struct{})
	steps := []Step{
		{Name: "waits", Run: func(ctx context.Context, _ func(string)) error {
			close(waits)
			<-ctx.Done()
			return ctx.Err()
		}},
		{Name: "fails", Run: func(context.Context, func(string)) error { <-waits; return errors.New("broken") }},
	}
	r := &recorder{}
	if err := Run(t.Context(), r, steps); err == nil || err.Error() != "fails: broken" {
		t.Errorf("err %v", err)
	}
	if want := []string{"fail fails: broken", "stop waits"}; !slices.Equal(r.log, want) {
		t.Errorf("told %v, want %v", r.log, want)
	}
}

func TestRunRefusesWorkflowsThatCannotEnd(t *testing.T) {
	o := &order{}
	for name, steps := range map[string][]Step{
		"unknown need":  {o.step("a", "nobody")},
		"later need":    {o.step("a", "b"), o.step("b")},
		"two of a name": {o.step("a"), o.step("a")},
	} {
		if err := Run(t.Context(), progress.Discard, steps); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if len(o.log) != 0 {
		t.Errorf("steps ran: %v", o.log)
	}
}

// recorder is a Reporter that remembers steps that did not end well, or had nothing to do.
type recorder struct {
	order
	progress.Reporter
}

func (r *recorder) Start(name string) progress.Step {
	return &recordedStep{Step: progress.Discard.Start(name), name: name, to: r}
}

type recordedStep struct {
	progress.Step
	name string
	to   *recorder
}

func (s *recordedStep) Skip(why string) { s.to.add("skip " + s.name + ": " + why) }
func (s *recordedStep) Stop()           { s.to.add("stop " + s.name) }
func (s *recordedStep) Fail(err error)  { s.to.add("fail " + err.Error()) }
