package change

import "testing"

// The ends of lines of a file on disk are changed for a merge only where all of them are CRLF, as Git for Windows writes them.
func TestMergeLinesKeepsEndsOfLines(t *testing.T) {
	for name, tt := range map[string]struct {
		was, now, wanted, merged string
		ok                       bool
	}{
		"all are CRLF":                     {"a\nb\nc\n", "a\r\nb\r\nc\r\nd\r\n", "A\nb\nc\n", "A\r\nb\r\nc\r\nd\r\n", true},
		"a later commit has one of CRLF":   {"a\nb\nc\nd\n", "a\nb\nc\nd\r\n", "A\nb\nc\nd\n", "A\nb\nc\nd\r\n", true},
		"a later commit has some of CRLF":  {"a\nb\nc\nd\n", "a\nb\nc\r\nd\r\n", "A\nb\nc\nd\n", "A\nb\nc\r\nd\r\n", true},
		"the commit itself brought a CRLF": {"a\r\nb\nc\n", "a\r\nb\nc\nd\n", "a\nb\nc\n", "a\nb\nc\nd\n", true},
		"the line to revert is CRLF now":   {"a\nb\nc\nd\n", "a\r\nb\nc\nd\n", "A\nb\nc\nd\n", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			merged, ok := mergeLines([]byte(tt.was), []byte(tt.now), []byte(tt.wanted))
			if ok != tt.ok || string(merged) != tt.merged {
				t.Errorf("got %q, %t, want %q, %t", merged, ok, tt.merged, tt.ok)
			}
		})
	}
}
