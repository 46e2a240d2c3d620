//go:build unix

package checkup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/preflight"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// A key that every user of the machine can read is told with the command that closes it.
func TestSecretFiles(t *testing.T) {
	dir := t.TempDir()
	text := ""
	c := &checks{session: &session.Session{Opts: session.Options{Dir: dir}, Mgmt: &v1alpha1.ManagementCluster{}}}
	if c.hasSecretFiles() {
		t.Error("there are no files")
	}
	c.session.Opts.AgeKeyFile = filepath.Join(dir, "age key")
	c.session.Mgmt.Providers = []v1alpha1.Provider{{Variables: []v1alpha1.Variable{
		{Name: "A", File: "gcp.json"}, {Name: "B", File: "none"}, {Name: "C", Value: &text},
	}}}
	for _, folder := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for mode, want := range map[os.FileMode]preflight.Status{0o644: preflight.StatusWarn, 0o640: preflight.StatusOK} {
		for _, name := range []string{"gcp.json", "age key"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("canary"), mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
				t.Fatal(err)
			}
		}
		got := c.checkSecretFiles(t.Context())
		if got.Status != want || want == preflight.StatusWarn &&
			!strings.Contains(got.Hint, "`chmod o= '"+filepath.Join(dir, "age key")+"' "+filepath.Join(dir, "gcp.json")+"`") {
			t.Errorf("%o: %+v", mode, got)
		}
	}
}
