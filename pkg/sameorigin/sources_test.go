package sameorigin_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// unguarded lists the files with HTTP clients that do not send their requests through this package, and why.
var unguarded = map[string]string{
	"pkg/contact/contact.go":                     "the caller gives the transport",
	"pkg/confine/worker.go":                      "every request is refused",
	"pkg/gitserve/state.go":                      "fleetctl's own server on this machine",
	"pkg/host/engine/socket.go":                  "the container engine's socket",
	"pkg/host/embedded/runner/probes.go":         "probes of containers carry no credential, and nobody sees the answers",
	"pkg/vault/vaulttest/vaulttest.go":           "a Vault of the tests on this machine",
	"pkg/host/embedded/controlplane/programs.go": "etcd and API server of this machine",
}

// Each HTTP client sends its requests through this package. So no credential goes to another server, no error quotes a credential from an
// answer, and a login page gives a clear error. Guard a new client too, or list it above with the reason.
func TestClientsAreGuarded(t *testing.T) {
	makes := regexp.MustCompile(`\bhttp\.(Client\{|DefaultClient|Get\(|Post\(|PostForm\(|Head\()|` +
		`\b(rest\.HTTPClientFor|githttp\.NewClient|remote\.WithTransport|soap\.NewClient)\(`)
	guarded := regexp.MustCompile(`sameorigin\.(Bind|Registry|Download|Screen)\(|\broundTripper\(`)
	used := map[string]bool{}
	sources := os.DirFS("../..")
	for _, top := range []string{"cmd", "pkg"} {
		err := fs.WalkDir(sources, top, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				return err
			}
			content, err := fs.ReadFile(sources, name)
			if err != nil || guarded.Match(content) {
				return err
			}
			at := makes.FindIndex(content)
			if at == nil {
				return nil
			}
			for room := range unguarded {
				if strings.HasPrefix(name, room) {
					used[room] = true
					return nil
				}
			}
			line := 1 + strings.Count(string(content[:at[0]]), "\n")
			t.Errorf("%s:%d: where do its requests go? Bind, Registry, Download or Screen of sameorigin keeps them there", name, line)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for room, why := range unguarded {
		if !used[room] {
			t.Errorf("nothing in %s makes a client any more (%s)", room, why)
		}
	}
}
