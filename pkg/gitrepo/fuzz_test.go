package gitrepo_test

import (
	"net"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1" //nolint:depguard // what fleet.yaml may say
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
)

// If the check of fleet.yaml accepts a URL, the Git client reads it as the same address. Errors do not repeat a refused URL, because it may
// contain a password.
func FuzzURL(f *testing.F) {
	for _, url := range []string{
		"https://github.com/acme/fleet.git", "https://git.example.com:8443/fleet", "http://127.0.0.1:3000/acme/fleet", "http://[::1]:3000/fleet",
		"git@github.com:acme/fleet.git", "git@[::1]:fleet", "ssh://git@git.example.com:2222/fleet.git", "ssh://git@[fe80::1]:22/~me/fleet",
		"https://user:secret@git.example.com/fleet", "git:secret@git.example.com:fleet", "ssh://git:secret@git.example.com/fleet",
		"file:///srv/fleet.git", "/srv/fleet.git", `C:\fleet`, "git@host:22/fleet", "git@host:2222/fleet", "https://host/%2e%2e/%00",
		"ssh://git@host:0/x", "",
		"git@host:2222:fleet", "t@\f::", `t@host:\fleet`,
	} {
		f.Add(url)
	}
	f.Setenv("HOME", f.TempDir()) // without the user's ~/.ssh/config
	f.Fuzz(func(t *testing.T, text string) {
		git := v1alpha1.Git{URL: text}
		want, err := git.ParseURL()
		protocol, address, clientErr := gitrepo.ParseURL(text)
		for _, err := range []error{err, clientErr} {
			if len(text) > 20 && err != nil && strings.Contains(err.Error(), text) {
				t.Errorf("the error repeats the URL: %v", err)
			}
		}
		if err != nil {
			return
		}
		if clientErr != nil {
			t.Fatalf("fleet.yaml may say %q, but: %v", text, clientErr)
		}
		if string(protocol) != want.Scheme {
			t.Errorf("%q: protocol %s, for the client %s", text, want.Scheme, protocol)
		}
		if protocol != gitrepo.ProtocolSSH {
			return
		}
		port := want.Port()
		if port == "" {
			port = "22"
		}
		if wanted := net.JoinHostPort(want.Hostname(), port); address != wanted {
			t.Errorf("%q: at %s, for the client at %s", text, wanted, address)
		}
	})
}
