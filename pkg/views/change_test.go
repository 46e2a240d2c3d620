package views

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/ui"
)

// A person sees how a long new file begins; a program gets all of it.
func TestDiffView(t *testing.T) {
	file := func(sign, hunk string, n int) string {
		b := &strings.Builder{}
		fmt.Fprintf(b, "--- a/x\n+++ b/x\n%s\n", hunk)
		for i := range n {
			fmt.Fprintf(b, "%sline %d\n", sign, i)
		}
		return b.String()
	}
	short, long := file("+", "@@ -0,0 +1,100 @@", 100), file("+", "@@ -0,0 +1,101 @@", 101)
	gone, edited := file("-", "@@ -1,500 +0,0 @@", 500), file("+", "@@ -1,2 +1,500 @@", 500)
	cut := func(whole string, left int) string {
		lines := strings.SplitAfter(whole, "\n")
		return strings.Join(lines[:3+beginning], "") + fmt.Sprintf("… %d more lines\n", left)
	}
	for name, tc := range map[string]struct{ diff, want string }{
		"none":    {"", ""},
		"short":   {short, short},
		"changed": {edited, edited},
		"all":     {short + long + edited + gone + short, short + cut(long, 89) + edited + cut(gone, 488) + short},
	} {
		for terminal, want := range map[bool]string{false: tc.diff, true: tc.want} {
			var out bytes.Buffer
			if err := diffView(&out, ui.Streams{OutTerminal: terminal}, tc.diff); err != nil || out.String() != want {
				t.Errorf("%s, terminal %t: got\n%s, %v", name, terminal, out.String(), err)
			}
		}
	}
}
