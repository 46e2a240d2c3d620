package validate

import (
	"strings"
	"testing"
)

// A text of a ClusterResourceSet's ConfigMap that is certainly no object is told; any other text is taken as it is.
func TestNotObjects(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "---\n---\n": "", "a word": "", "kind: List\n": "", "apiVersion: v1\nkind: ConfigMap\n---\napiVersion: v1\nkind: Secret\n": "",
		"a: [":                       "it is not YAML",
		"apiVersion: v1\nkind: ''\n": "its document 1 is no object: kind is missing",
		"apiVersion: v1\nkind: A\n---\napiVersion: v1\nmetadata: {}\n": "its document 2 is no object: kind is missing",
	} {
		if got := notObjects(text); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
