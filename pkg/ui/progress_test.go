package ui

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestPlainProgress is what a pipeline's log shows: a line when a step begins and ends, and one now and then while it is silent.
func TestPlainProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		r := NewReporter(Streams{Err: &out}, false)
		first, second := r.Start("make it"), r.Start("wait for it")
		second.Detail("it is asleep")
		time.Sleep(3 * time.Second)
		first.Done()
		first.Fail(errors.New("too late to fail"))
		time.Sleep(17 * time.Second)
		r.Warn("it snores")
		second.Skip("it never woke")
		r.Start("stop it").Stop()
		r.Start("break it").Fail(errors.New("it is broken"))
		r.Close()
		r.Close()
		want := `… make it
… wait for it
✓ make it  3.0s
… wait for it  still running, 15.0s: it is asleep
warning: it snores
✓ wait for it  20.0s, it never woke
… stop it
- stop it  0.0s
… break it
✗ break it  0.0s
`
		if out.String() != want {
			t.Errorf("wrote:\n%s\nwant:\n%s", out.String(), want)
		}
		var outcomes []string
		for _, e := range r.Events() {
			outcomes = append(outcomes, e.Step+" "+e.Outcome)
		}
		if want := []string{"make it done", "wait for it skipped", "stop it stopped", "break it failed"}; !slices.Equal(outcomes, want) {
			t.Errorf("events %v, want %v", outcomes, want)
		}
		if e := r.Events(); e[0].Seconds != 3 || e[3].Detail != "it is broken" {
			t.Errorf("events %+v", e)
		}
	})
}

// TestLiveProgress: on a terminal the running steps are drawn again in place, and what was drawn is erased before anything else is
// written.
func TestLiveProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		r := NewReporter(Streams{Err: &out, ErrSmart: true}, false)
		step := r.Start("make it")
		step.Detail(strings.Repeat("long ", 40))
		time.Sleep(time.Second)
		step.Done()
		r.Close()
		drawn, rest, found := strings.Cut(out.String(), "✓ make it  1.0s\n")
		if !found || rest != "" {
			t.Fatalf("the last line is not the step's end:\n%q", out.String())
		}
		if !strings.HasSuffix(drawn, "\x1b[1A\x1b[J") {
			t.Errorf("the live block is not erased before the last line:\n%q", drawn)
		}
		if n := strings.Count(drawn, "make it"); n < 5 {
			t.Errorf("drawn %d times in a second", n)
		}
		for line := range strings.Lines(drawn) {
			if len([]rune(line)) > 120 {
				t.Errorf("a line that wraps cannot be erased: %q", line)
			}
		}
	})
}

// TestQuiet: only warnings are written, the events are kept.
func TestQuiet(t *testing.T) {
	var out strings.Builder
	r := NewReporter(Streams{Err: &out}, true)
	r.Start("make it").Done()
	r.Warn("mind the gap")
	r.Close()
	if out.String() != "warning: mind the gap\n" || len(r.Events()) != 1 {
		t.Errorf("wrote %q, events %v", out.String(), r.Events())
	}
}
