package yamledit_test

import (
	"fmt"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
)

// The parser says a line at most, and often that of what stands around the mistake; a person needs the place.
func TestPlace(t *testing.T) {
	for src, want := range map[string]string{
		"metadata:\n\tname: x\n": "2:1",

		"a:\n  b: 1\n  c: \"d\n  e: f\n": "3:6", // where the quote is opened

		"a:\n  b: [x\nc: d\n": "2:7",

		"a: b: c\n": "1:5",

		"a:\n- b\n c: d\n": "3:3",

		"spec:\n  a: {}\n  b:\n  - A\n  c: {}\n    d: e\n": "6:5",

		"\u00e9: *nope\n": "1:8",

		"a: b\n@b: c\n": "2:1",

		"a: b\n---\nc: d\n\te: f\n": "4:1",
	} {
		_, err := yamledit.Parse([]byte(src))
		if err == nil {
			t.Errorf("%q is read", src)
			continue
		}
		line, column, message := yamledit.Place([]byte(src), err)
		if got := fmt.Sprintf("%d:%d", line, column); got != want || message == "" {
			t.Errorf("%q: %s (%s), want %s; the parser says: %v", src, got, message, want, err)
		}
	}
	src := []byte("a: b\n")
	if line, column, message := yamledit.Place(src, fmt.Errorf("line 7: what another reader says")); line != 7 || column != 0 ||
		message != "what another reader says" {
		t.Errorf("%d:%d %s", line, column, message)
	}
}
