package kube

import (
	"bytes"
	"strings"
	"testing"
)

func TestEndOfLog(t *testing.T) {
	for name, test := range map[string]struct {
		raw   string
		limit int64
		want  string
	}{
		"short":              {"a\nb\n", 10, "a\nb\n"},
		"the newest is kept": {"first line\nsecond\nlast", 10, "last"},
		"a whole line":       {"aaaa\nbbbb\ncccc\n", 10, "cccc\n"},
		"one line too long":  {strings.Repeat("a", 20), 10, ""},
	} {
		if got := string(endOfLog([]byte(test.raw), test.limit)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	cut := append(bytes.Repeat([]byte("line\n"), maxLogRead/5), "tok"...)
	if got := endOfLog(cut, 1<<20); !bytes.HasSuffix(got, []byte("line\n")) {
		t.Errorf("a line that was cut off is shown: %q", got[len(got)-10:])
	}
}
