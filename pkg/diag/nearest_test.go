package diag

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"url", "branch", "username", "caFile", "knownHosts", "interval", "git-token-file"}
	for name, want := range map[string]string{
		"brnach": "branch", "Branch": "branch", "known_hosts": "knownHosts", "cafile": "caFile", "user": "username", "git": "git-token-file",
		"us": "", "interva": "interval",
		"usrname": "username", "urll": "url", "GIT_TOKEN_FILE": "git-token-file", "": "", "xyz": "", strings.Repeat("a", 1e6): "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("Nearest(%.20q) = %q, want %q", name, got, want)
		}
	}
	if got := Nearest("x", []string{"t", "to"}); got != "" {
		t.Errorf("Nearest of a letter is the other letter %q", got)
	}
}
