package session

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// The Git server knows the deploy key that is there: one that cannot be read is no key that was never made.
func TestDeployKeyThatCannotBeRead(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"a loop":    func(path string) error { return os.Symlink(path, path) },
		"a folder":  func(path string) error { return os.Mkdir(path, 0o700) },
		"truncated": func(path string) error { return os.WriteFile(path, []byte("-----BEGIN OPENSSH"), 0o600) },
		"empty":     func(path string) error { return os.WriteFile(path, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			s := &Session{
				Fleet: &v1alpha1.Fleet{}, Mgmt: &v1alpha1.ManagementCluster{Name: "root"},
				Cluster: state.Cluster{Name: "root", Dir: filepath.Join(t.TempDir(), "root")},
			}
			made, err := s.keepDeployKey()
			if err != nil {
				t.Fatal(err)
			}
			if again, err := s.keepDeployKey(); err != nil || string(again.Private) != string(made.Private) {
				t.Fatalf("another key is made, %v", err)
			}
			path := s.Cluster.Path(deployKeyFile)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := spoil(path); err != nil {
				t.Fatal(err)
			}
			before, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.keepDeployKey(); err == nil || diag.Hint(err) == "" {
				t.Errorf("the error is %v, hint %q", err, diag.Hint(err))
			}
			if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
				t.Errorf("the file is another now, %v", err)
			}
		})
	}
}
