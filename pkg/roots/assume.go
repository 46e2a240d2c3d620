package roots

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// ErrNoFlux says that nothing in a folder tells what Flux applies of it.
var ErrNoFlux = errors.New("nothing there says what Flux applies")

// Assume is the fleet of a repo without a fleet.yaml, as far as its Flux objects tell: each folder that a cluster's Flux begins with is
// that of a management cluster. The error is ErrNoFlux.
func Assume(files fs.FS, dir string) (*v1alpha1.Fleet, error) {
	found := In(files)
	if len(found) == 0 {
		hint := "run fleetctl in the fleet repo or give its folder with --repo; `fleetctl init` makes one"
		if folder := appliedElsewhere(files); folder != "" {
			hint = "the Flux of another repo seems to apply this one: write a " + v1alpha1.FileName + " with a management cluster whose `path` is " +
				"the folder that is applied, such as path: " + folder + " (and `host: {type: existing}`), and fleetctl looks at it"
		}
		return nil, &diag.Error{Err: &noFleetError{dir}, Hint: hint}
	}
	fleet := &v1alpha1.Fleet{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind,
		Metadata: v1alpha1.Metadata{Name: Label(filepath.Base(dir), "fleet")},
	}
	for _, r := range found {
		fleet.Spec.Git.URL = cmp.Or(fleet.Spec.Git.URL, r.URL)
		fleet.Spec.Git.Branch = cmp.Or(fleet.Spec.Git.Branch, r.Branch)
		fleet.Spec.ManagementClusters = append(fleet.Spec.ManagementClusters, v1alpha1.ManagementCluster{
			Name: r.Name, Path: r.Path, Host: v1alpha1.Host{Type: v1alpha1.HostExisting},
		})
	}
	return fleet, nil
}

// AddTo adds the roots that fleet.yaml does not name to the fleet of a repo with its own layout, such as the roots of workload
// clusters. Commands that look at everything that Flux applies then look at these folders too. Any other fleet comes back as it is.
func AddTo(fleet *v1alpha1.Fleet, files fs.FS) *v1alpha1.Fleet {
	all := fleet.Spec.ManagementClusters
	if !fleet.HasPaths() {
		return fleet
	}
	paths, names := map[string]bool{}, map[string]bool{}
	for i := range all {
		paths[all[i].Dir()], names[all[i].Name] = true, true
	}
	more := *fleet
	more.Spec.ManagementClusters = slices.Clone(all)
	for _, r := range In(files) {
		if paths[r.Path] {
			continue
		}
		name := r.Name
		for n := 2; names[name]; n++ {
			name = fmt.Sprintf("%.36s-%d", r.Name, n)
		}
		names[name] = true
		more.Spec.ManagementClusters = append(more.Spec.ManagementClusters, v1alpha1.ManagementCluster{
			Name: name, Path: r.Path, Host: v1alpha1.Host{Type: v1alpha1.HostExisting},
		})
	}
	return &more
}

type noFleetError struct{ dir string }

func (e *noFleetError) Error() string {
	return "there is no " + v1alpha1.FileName + " in " + e.dir + " or above, and " + ErrNoFlux.Error() + " of it"
}

func (e *noFleetError) Unwrap() error { return ErrNoFlux }
