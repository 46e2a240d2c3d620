package ui

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A command without steps tells of a long wait, and not of a short one. A command with steps tells of its steps alone.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		r := NewReporter(Streams{Err: &out}, false)
		quick := r.Await(said("a quick answer"))
		time.Sleep(4 * time.Second)
		quick()
		slow := r.Await(said("an answer of https://slow\x1b[2J"))
		time.Sleep(time.Second)
		also := r.Await(said("another answer"))
		time.Sleep(20 * time.Second)
		slow()
		slow()
		also()
		step := r.Start("make it")
		hidden := r.Await(said("an answer of a step"))
		time.Sleep(6 * time.Second)
		step.Done()
		hidden()
		late := r.Await(said("an answer after the end"))
		r.Close()
		time.Sleep(6 * time.Second)
		late()
		want := `… wait for an answer of https://slow\x1b[2J
… wait for an answer of https://slow\x1b[2J  still running, 20.0s
… make it
✓ make it  6.0s
`
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", out.String(), want)
		}
		if events := r.Events(); len(events) != 1 {
			t.Errorf("events: %v", events)
		}
	})
}

// On a live terminal the wait goes away when it has ended.
func TestAwaitLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		r := NewReporter(Streams{Err: &out, ErrSmart: true}, false)
		answered := r.Await(said("an answer"))
		time.Sleep(6 * time.Second)
		if !strings.Contains(out.String(), "wait for an answer  5.") {
			t.Errorf("it shows %q", out.String())
		}
		answered()
		before := out.Len()
		time.Sleep(time.Second)
		if out.Len() != before {
			t.Errorf("then it shows %q", out.String()[before:])
		}
		r.Close()
	})
}

func said(what string) func() string { return func() string { return what } }
