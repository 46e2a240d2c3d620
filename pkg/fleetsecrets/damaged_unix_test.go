//go:build unix

package fleetsecrets

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// An empty or damaged key file is an error that names the file and the way out. The file stays unchanged.
func TestDamagedKeyFile(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"empty":     func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"truncated": func(path string) error { return os.WriteFile(path, []byte("AGE-SECRET-KEY-1QQ"), 0o600) },
		"a folder":  func(path string) error { return os.Mkdir(path, 0o700) },
		"a pipe":    func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a loop":    func(path string) error { return os.Symlink(path, path) },
	} {
		for kind, fleet := range map[string]state.Fleet{
			"of its identity": {ID: "7c1d8f0e-8a4f-4d0e-9d0b-0a1d0c6b6f11", Name: "acme"},
			"of its name":     {Name: "acme"},
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				deps := management.Deps{Store: state.Store{Dir: t.TempDir()}, LookupEnv: func(string) (string, bool) { return "", false }}
				path := deps.Store.KeyFile(fleet)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := spoil(path); err != nil {
					t.Fatal(err)
				}
				before, err := os.Lstat(path)
				if err != nil {
					t.Fatal(err)
				}
				look := state.Fleet{ID: "7c1d8f0e-8a4f-4d0e-9d0b-0a1d0c6b6f11", Name: "acme"} // the one of its name is older
				if _, err := LocalKeys(deps, look, t.TempDir(), ""); err == nil || !strings.Contains(err.Error(), path) ||
					!strings.Contains(diag.Hint(err), "move it away") {
					t.Errorf("the error is %v, hint %q", err, diag.Hint(err))
				}
				key, err := secret.NewKey()
				if err != nil {
					t.Fatal(err)
				}
				if err := KeepKeys(t.Context(), deps, fleet, secret.Keys{key}); err == nil {
					t.Error("a key is put in its place")
				}
				if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
					t.Errorf("the file is another now, %v", err)
				}
			})
		}
	}
}
