package change

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
)

// Commands that edit the same file at once each make their change, written or committed.
func TestEditsAtOnce(t *testing.T) {
	t.Parallel()
	for name, commit := range map[string]bool{"written": false, "committed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			content := "apiVersion: fleetctl.dev/v1alpha1\nkind: Fleet\nmetadata: {name: x}\nspec:\n  managementClusters:\n  - name: m\n" +
				"    providers:\n    - name: docker\n"
			if err := os.WriteFile(filepath.Join(dir, v1alpha1.FileName), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{
				{"init", "-q"},
				{"config", "user.name", "a"},
				{"config", "user.email", "a@example.com"},
				{"add", "-A"},
				{"commit", "-qm", "start"},
			} {
				if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
					t.Fatalf("git %v: %v\n%s", args, err, out)
				}
			}
			want := []string{"docker", "aws", "azure", "gcp", "openstack", "vsphere"}
			var group sync.WaitGroup
			for _, provider := range want[1:] {
				group.Go(func() {
					done, err := Make(t.Context(), Options{Dir: dir, Commit: commit, Edit: func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
						return r.AddProvider("", v1alpha1.Provider{Name: provider})
					}})
					if err != nil || !done.Changed {
						t.Errorf("%s: %+v, %v", provider, done, err)
					}
				})
			}
			group.Wait()
			r, err := fleetrepo.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range r.Providers() {
				got = append(got, p.Name)
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("fleet.yaml has the providers %v", got)
			}
		})
	}
}
