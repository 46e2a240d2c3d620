package session

import (
	"strings"
	"testing"
)

func TestNameFrom(t *testing.T) {
	for dir, want := range map[string]string{
		"/srv/Acme Fleet": "acme-fleet", "/": "fleet", "/x/__": "fleet", "/x/a.b": "a-b",
		"/x/" + strings.Repeat("long-", 20): strings.Trim(strings.Repeat("long-", 8), "-"),
	} {
		if got := nameFrom(dir); got != want {
			t.Errorf("nameFrom(%q) = %q, want %q", dir, got, want)
		}
	}
}
