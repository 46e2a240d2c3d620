package gitrepo

import (
	"testing"

	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// Two addresses of one server share its credential, however they write its name and its port.
func TestServerOf(t *testing.T) {
	for _, tc := range []struct {
		one, other string
		same       bool
	}{
		{"https://git.example.com/a.git", "https://git.example.com/b.git", true},
		{"https://git.example.com/a.git", "https://GIT.example.com:443/a.git", true},
		{"https://git.example.com/a.git", "https://git.example.com:8443/a.git", false},
		{"https://git.example.com/a.git", "https://git.example.com.evil.example/a.git", false},
		{"https://git.example.com/a.git", "ssh://git@git.example.com/a.git", false},
		{"https://[::1]:8443/a.git", "https://[0:0::1]:8443/a.git", true},
		{"git@git.example.com:a.git", "ssh://git@git.example.com/b.git", true},
	} {
		one, err := parseEndpoint(tc.one)
		if err != nil {
			t.Fatal(err)
		}
		other, err := parseEndpoint(tc.other)
		if err != nil {
			t.Fatal(err)
		}
		if got := sameorigin.Same(serverOf(one), serverOf(other)); got != tc.same {
			t.Errorf("%s and %s: %t", tc.one, tc.other, got)
		}
	}
}
