package validate

import (
	"bytes"
	"strings"
	"testing"
)

// Whatever stands in a file: a comment that silences a rule names one that there is, gives a reason, is about lines that the file has, and
// none that says less is passed over.
func FuzzIgnores(f *testing.F) {
	for _, text := range []string{
		"a: b # fleetctl:ignore unknown-field we like it\n", "# fleetctl:ignore unknown-field\n", "# fleetctl:ignore\na: b",
		"# fleetctl:ignore unknown-feild why\n\n# c\n\na: b\n",
		"<!-- fleetctl:ignore plain-secret an example -->\nkey\n", "{{- /* fleetctl:ignore plain-secret an example */ -}}\r\nkey\r\n",
		"// fleetctl:ignore plain-secret\tx\n",
		"a: 'x # fleetctl:ignore unknown-field y'\n", "#fleetctl:ignore  unknown-field   two words  \n",
		"fleetctl:ignore unknown-field no comment\n",
	} {
		f.Add([]byte(text), true)
		f.Add([]byte(text), false)
	}
	f.Fuzz(func(t *testing.T, content []byte, isYAML bool) {
		ignores, findings := parseIgnores("a.yaml", content, isYAML)
		lines := bytes.Count(content, []byte("\n")) + 1
		if most := strings.Count(string(content), ignoreMarker); len(ignores)+len(findings) > most {
			t.Errorf("%d ignores and %d findings of %d comments", len(ignores), len(findings), most)
		}
		for _, ig := range ignores {
			if !isRule(ig.rule) || ig.line < 1 || ig.from < 1 || ig.to < ig.from || ig.to > lines {
				t.Errorf("%+v in %d lines", ig, lines)
			}
		}
		for _, found := range findings {
			if found.Rule != RuleIgnore || found.Line < 1 || found.Line > lines || found.Column < 1 ||
				found.Column > len(bytes.Split(content, []byte("\n"))[found.Line-1])+1 {
				t.Errorf("%+v is no place in the file", found)
			}
		}
	})
}
