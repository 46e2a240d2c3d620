package sameorigin_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// unguarded are the files that make clients of HTTP whose requests do not pass through this package.
var unguarded = map[string]string{
	"pkg/contact/contact.go":                     "the caller gives the transport",
	"pkg/confine/worker.go":                      "every request is refused",
	"pkg/gitserve/state.go":                      "fleetctl's own server on this machine",
	"pkg/host/engine/socket.go":                  "the container engine's socket",
	"pkg/host/embedded/runner/probes.go":         "probes of containers carry no credential, and nobody sees the answers",
	"pkg/host/embedded/controlplane/programs.go": "etcd and API server of this machine",
}

// Each client of HTTP sends its requests through this package: so no credential goes astray, none comes back in an answer that an error
// quotes, and a page to log in is told as one. A new client joins them, or says here why not.
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
