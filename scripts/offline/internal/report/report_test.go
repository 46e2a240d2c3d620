package report

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
)

// ofAll is the processor time that all processors have in so many minutes.
func ofAll(minutes int) time.Duration { return time.Duration(minutes*runtime.NumCPU()) * time.Minute }

func TestMinutesLeft(t *testing.T) {
	ahead := map[string]time.Duration{"a": ofAll(4), "b": ofAll(2)}
	for _, test := range []struct {
		name    string
		work    work
		step    string
		elapsed time.Duration
		want    string
	}{
		{"before anything", work{ahead: ahead}, "", 0, ", about 6 minutes left"},
		{"in the midst of a step", work{ahead: ahead}, "a", 3 * time.Minute, ", about 3 minutes left"},
		{"a step that takes longer than expected", work{ahead: ahead}, "a", time.Hour, ", about 3 minutes left"},
		{"a machine half as fast", work{ahead: ahead, cost: ofAll(1), spent: 2 * time.Minute}, "", 0, ", about 12 minutes left"},
		{"all was compiled before", work{ahead: ahead, cost: ofAll(60), spent: time.Minute}, "", 0, ", about a minute left"},
		{"nothing known", work{}, "a", time.Minute, ""},
	} {
		if got := test.work.left(test.step, test.elapsed); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// What was expected of a step is no longer ahead when it has ended, and still is when it failed.
func TestStepsEnd(t *testing.T) {
	var out strings.Builder
	r := New(&out)
	r.Expect(map[string]time.Duration{"a": ofAll(60), "b": 0})
	r.Start("b").End(nil)
	r.Start("a").End(errors.New("no"))
	r.Start("a").End(nil)
	const want = "2 programs to build, about 60 minutes left\nb …\nb: done in 0s, about 60 minutes left\na …\na: failed after 0s\na …\na: " +
		"done in 0s\n"
	if out.String() != want {
		t.Errorf("it says\n%swant\n%s", out.String(), want)
	}
	New(io.Discard).Expect(nil)
}
