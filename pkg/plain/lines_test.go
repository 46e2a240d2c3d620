package plain

import (
	"bytes"
	"strings"
	"testing"
)

// TestGuardLongText writes a long text with one harmful part, once in one piece and once byte by byte. The output is the same.
func TestGuardLongText(t *testing.T) {
	t.Parallel()
	fine := strings.Repeat("arn: aws:iam#1 \t/x\n", 500)
	for _, bad := range []string{
		"::error::x\n", "  ::x\n", "a ::x\n", "##[x]\n", "#\n#[x\n", ":\n:x\n", "\x1b[31m\n", "ö\n", "\u202e\n", "\r\n", "\r", "::", "\n::set\n",
		Red.String() + "x" + Reset.String(), "\xff\n",
	} {
		for _, text := range []string{fine + bad + fine, bad + fine + bad, fine + "x" + bad + bad + fine, "x" + fine + bad} {
			var whole, single bytes.Buffer
			a, b := &Guard{W: &whole}, &Guard{W: &single}
			if _, err := a.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			for i := range len(text) {
				if _, err := b.Write([]byte{text[i]}); err != nil {
					t.Fatal(err)
				}
			}
			if whole.String() != single.String() {
				t.Errorf("%q: in one piece %q, else %q", bad, tailOf(whole.String()), tailOf(single.String()))
			}
		}
	}
}

func tailOf(s string) string { return s[max(0, len(s)-100):] }
