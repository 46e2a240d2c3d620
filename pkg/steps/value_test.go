package steps

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/progress"
)

func text(what string) func(context.Context, func(string)) (string, error) {
	return func(context.Context, func(string)) (string, error) { return what, nil }
}

// The value of one step reaches the steps that need it, directly or through other steps, and callers who look at the workflow from outside.
func TestValuesFlow(t *testing.T) {
	given, one, two, three := NewValue[string]("the given"), NewValue[string]("the first"), NewValue[int]("the second"),
		NewValue[string]("the third")
	given.Tell("g")
	var got []string
	err := Run(t.Context(), progress.Discard, []Step{
		{Name: "a", Work: Make(one, text("x"))},
		{Name: "b", Needs: []string{"a"}, Work: Make2(two, func(_ context.Context, a, g string, _ func(string)) (int, error) {
			return len(a + g), NothingToDo("it is counted")
		}, one, given)},
		{Name: "c", Needs: []string{"b"}, Work: Make3(three, func(_ context.Context, a string, n int, g string, _ func(string)) (string, error) {
			return strings.Repeat(a, n) + g, nil
		}, one, two, given)},
		{Name: "d", Needs: []string{"c"}, Work: Do3(func(_ context.Context, a string, n int, c string, _ func(string)) error {
			got = append(got, a, strings.Repeat("n", n), c)
			return nil
		}, one, two, three)},
	})
	if want := []string{"x", "nn", "xxg"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if last, made := three.Peek(); last != "xxg" || !made {
		t.Errorf("from outside: %q, %v", last, made)
	}
}

// A step tells a value long before the step ends. A parallel step goes on with this value.
func TestValuesAwaited(t *testing.T) {
	news, answer := NewValue[string]("the news"), NewValue[string]("the answer")
	answered := make(chan struct{})
	err := Run(t.Context(), progress.Discard, []Step{
		{Name: "a", Work: Do(func(ctx context.Context, _ func(string)) error {
			news.Tell("hello")
			news.Tell("too late")
			select {
			case <-answered:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}).Telling(news)},
		{Name: "b", Work: Make1(answer, func(ctx context.Context, news Awaited[string], _ func(string)) (string, error) {
			heard, err := news.Await(ctx)
			close(answered)
			return heard + " to you", err
		}, Later(news))},
	})
	if got, _ := answer.Peek(); err != nil || got != "hello to you" {
		t.Errorf("got %q, %v", got, err)
	}
}

// Whoever waits for what a failed step was to make ends with the workflow.
func TestAwaitEndsWithTheWorkflow(t *testing.T) {
	broken := errors.New("broken")
	value := NewValue[string]("the value")
	err := Run(t.Context(), progress.Discard, []Step{
		{Name: "waits", Work: Do1(func(ctx context.Context, v Awaited[string], _ func(string)) error {
			_, err := v.Await(ctx)
			return err
		}, Later(value))},
		{Name: "fails", Work: Make(value, func(context.Context, func(string)) (string, error) { return "half", broken })},
	})
	if _, made := value.Peek(); !errors.Is(err, broken) || made {
		t.Errorf("got %v; made: %v", err, made)
	}
}

// A workflow in which a step could not get a value is refused before any step runs.
func TestCheckRefusesValuesThatCannotBe(t *testing.T) {
	v, w := NewValue[string]("the plan"), NewValue[string]("the news")
	nothing := func(context.Context, func(string)) error { return nil }
	takes := func(from Input[string]) Work {
		return Do1(func(context.Context, string, func(string)) error { return nil }, from)
	}
	awaits := func(from *Value[string]) Work {
		return Do1(func(context.Context, Awaited[string], func(string)) error { return nil }, Later(from))
	}
	for name, c := range map[string]struct {
		steps []Step
		want  string
	}{
		"the maker is not needed": {
			[]Step{{Name: "a", Work: Make(v, text(""))}, {Name: "b", Run: nothing}, {Name: "c", Needs: []string{"b"}, Work: takes(v)}},
			`step "c" takes the plan, but does not need the step "a", which makes it`,
		},
		"nobody makes it":       {[]Step{{Name: "a", Work: takes(v)}}, "which no step makes"},
		"nobody makes it, ever": {[]Step{{Name: "a", Work: awaits(v)}}, "which no step makes"},
		"two make it": {
			[]Step{{Name: "a", Work: Make(v, text(""))}, {Name: "b", Work: Make(v, text(""))}},
			`the steps "a" and "b" both make the plan`,
		},
		"it may never be made": {[]Step{{
			Name: "a", Work: Make(v, text("")),
			Done: func(context.Context) (string, bool, error) { return "", true, nil },
		}}, "must not have a Done"},
		"nothing is to be done":    {[]Step{{Name: "a"}}, "either Run or Work"},
		"two things are":           {[]Step{{Name: "a", Run: nothing, Work: Do(nothing)}}, "either Run or Work"},
		"it waits for itself":      {[]Step{{Name: "a", Work: awaits(v).Telling(v)}}, "would never end"},
		"they wait for each other": {[]Step{{Name: "a", Work: awaits(w).Telling(v)}, {Name: "b", Work: awaits(v).Telling(w)}}, "would never end"},
		"one that needs it is waited for": {
			[]Step{{Name: "a", Work: awaits(v)}, {Name: "b", Needs: []string{"a"}, Work: Make(v, text(""))}}, "would never end",
		},
	} {
		if err := Check(c.steps); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// A step that was to tell a value and did not has failed: others would wait for it in vain.
func TestStepThatForgetsItsValue(t *testing.T) {
	for name, err := range map[string]error{"done": nil, "nothing to do": NothingToDo("all is well")} {
		value := NewValue[string]("the news")
		got := Run(t.Context(), progress.Discard, []Step{{
			Name: "a",
			Work: Do(func(context.Context, func(string)) error { return err }).Telling(value),
		}})
		if got == nil || got.Error() != "a: it ended without the news, which it makes" {
			t.Errorf("%s: got %v", name, got)
		}
		if _, err := value.take(); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
}
