package views

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/fleetctl/fleetctl/pkg/ui"
)

// hostileText is what a repo, a cluster or a forge may have for a name, a message or a URL.
const hostileText = "a\n::error file=x::owned\r\n##[command]b\x1b[2J\x1b]0;title\x07\u009b31m\u202e\u2066c\u2028d\x00\x7f " +
	"::add-mask::e\n  ::set-env name=PATH::f"

// TestHostileTexts prints every view in every format with hostile texts in all places that somebody else may write: conditions, events,
// names, versions and URLs. The output contains nothing that a terminal or a CI runner acts on, and no text makes new lines.
func TestHostileTexts(t *testing.T) {
	for _, s := range allShown {
		t.Run(s.name, func(t *testing.T) {
			for _, format := range []ui.Format{ui.Human, ui.Wide, ui.Name, ui.JSON, ui.YAML} {
				if (format == ui.Wide || format == ui.Name) && !s.isList {
					continue
				}
				out, notes := printed(t, format, s.view(hostileText))
				got := out + notes
				for _, r := range got {
					if unicode.IsControl(r) && r != '\n' && r != '\t' || r == '\u202e' || r == '\u2066' || r == '\u2028' {
						t.Errorf("%s: %U in %.300q", format, r, got)
						break
					}
				}
				for line := range strings.Lines(got) {
					if text := strings.TrimSpace(line); strings.HasPrefix(text, "::") || strings.Contains(text, "##[") {
						t.Errorf("%s: the line %q is a command", format, text)
					}
				}
				plainOut, plainNotes := printed(t, format, s.view("harmless"))
				if lines, want := strings.Count(got, "\n"), strings.Count(plainOut+plainNotes, "\n"); format != ui.YAML && lines != want {
					t.Errorf("%s: %d lines, %d of what is harmless:\n%s", format, lines, want, got)
				}
				var back any
				if format == ui.JSON && json.Unmarshal([]byte(out), &back) != nil {
					t.Errorf("no JSON: %s", out)
				}
			}
		})
	}
}
