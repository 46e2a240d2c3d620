package validate

import (
	"os"
	"strings"
	"testing"
)

// Every rule has its part of the page that findings link to, with its severity and its sentence.
func TestRulesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/validation.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range Rules() {
		want := "\n## " + r.ID + "\n\n*" + string(r.Severity) + "* · " + r.Summary + "\n"
		if !strings.Contains(string(page), want) {
			t.Errorf("docs/validation.md lacks %q", want)
		}
	}
	if parts := strings.Count(string(page), "\n## "); parts != len(Rules()) {
		t.Errorf("docs/validation.md has %d parts for %d rules", parts, len(Rules()))
	}
}
