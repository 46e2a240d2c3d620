package views

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/management"
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

// A pause that Git does not have says how Git gets it. Where no commit can pause or resume an object, it says what else ends the pause.
func TestPausedSaysHowToGoOn(t *testing.T) {
	const commit, resume = "fleetctl channel pause next --push", "fleetctl channel resume main --now"
	for _, tc := range []struct {
		paused, inGit bool
		commit, want  string
	}{
		{true, false, commit, "until you run `" + commit + "`"},
		{true, false, "", "`" + resume + "` ends the pause"},
		{true, true, commit, ""},
		{false, true, commit, "`" + commit + "` changes Git"},
		{false, true, "", "remove `suspend: true` from it"},
		{false, false, commit, ""},
	} {
		var said bytes.Buffer
		objects := []management.Switched{{ManagementCluster: "mgmt", Kind: "GitRepository", Changed: true, InGit: tc.inGit}}
		v := Paused(tc.paused, objects, tc.commit, resume)
		if err := Print(ui.Streams{Out: io.Discard, Err: &said}, ui.Human, false, v); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(said.String(), tc.want) || tc.want == "" && said.Len() > 0 || strings.Contains(said.String(), "``") {
			t.Errorf("%+v: it says\n%s", tc, said.String())
		}
	}
}
