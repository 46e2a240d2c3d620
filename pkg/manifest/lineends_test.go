package manifest

import "testing"

// The ends of lines of a file on disk are changed for a merge only where all of them are CRLF, as Git for Windows writes them.
func TestMergeTextKeepsEndsOfLines(t *testing.T) {
	for name, tt := range map[string]struct {
		was, now, wanted, merged string
		ok                       bool
	}{
		"all are CRLF":                     {"a\nb\nc\n", "a\r\nb\r\nc\r\nd\r\n", "A\nb\nc\n", "A\r\nb\r\nc\r\nd\r\n", true},
		"a later commit has one of CRLF":   {"a\nb\nc\nd\n", "a\nb\nc\nd\r\n", "A\nb\nc\nd\n", "A\nb\nc\nd\r\n", true},
		"a later commit has some of CRLF":  {"a\nb\nc\nd\n", "a\nb\nc\r\nd\r\n", "A\nb\nc\nd\n", "A\nb\nc\r\nd\r\n", true},
		"the commit itself brought a CRLF": {"a\r\nb\nc\n", "a\r\nb\nc\nd\n", "a\nb\nc\n", "a\nb\nc\nd\n", true},
		"the file was empty":               {"", "a\r\n", "", "a\r\n", true},
		"the line to revert is CRLF now":   {"a\nb\nc\nd\n", "a\r\nb\nc\nd\n", "A\nb\nc\nd\n", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			merged, ok := MergeText([]byte(tt.was), []byte(tt.now), []byte(tt.wanted))
			if ok != tt.ok || string(merged) != tt.merged {
				t.Errorf("got %q, %t, want %q, %t", merged, ok, tt.merged, tt.ok)
			}
		})
	}
}

// A text gets CRLF only in the place of a file that has it in all lines. No text at all, and an empty one, stay what they are.
func TestEndsOf(t *testing.T) {
	for name, tt := range map[string]struct{ there, text, want string }{
		"CRLF":          {"a\r\nb\r\n", "c\nd\n", "c\r\nd\r\n"},
		"LF":            {"a\nb\n", "c\n", "c\n"},
		"some of them":  {"a\r\nb\n", "c\n", "c\n"},
		"there is none": {"", "c\n", "c\n"},
		"CRLF already":  {"a\r\n", "c\r\nd\n", "c\r\nd\n"},
	} {
		if got := EndsOf([]byte(tt.there), []byte(tt.text)); string(got) != tt.want {
			t.Errorf("%s: got %q", name, got)
		}
	}
	there := []byte("a\r\n")
	if EndsOf(there, nil) != nil || EndsOf(there, []byte{}) == nil || LF(nil) != nil || LF([]byte{}) == nil {
		t.Error("no text is not an empty text")
	}
	if merged, ok := MergeText([]byte("a\n"), there, []byte{}); !ok || merged == nil {
		t.Errorf("a file that is emptied: got %q, %t", merged, ok)
	}
}
