package lifecycle

import (
	"context"
	"path/filepath"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/progress"
)

// ReadComponents reads all that the fleet of the repo that dir is in installs, from an offline bundle or over the network, and returns what its
// lock is to say of it.
func ReadComponents(ctx context.Context, report progress.Reporter, dir, bundle, cacheDir string) (_ []v1alpha1.LockedComponent, err error) {
	top, err := fleetrepo.Find(dir)
	if err != nil {
		return nil, err
	}
	fleet, err := v1alpha1.Load(filepath.Join(top, v1alpha1.FileName))
	if err != nil {
		return nil, err
	}
	step := report.Start("read components")
	reader, err := components.Open(ctx, bundle, cacheDir)
	if err != nil {
		step.Fail(err)
		return nil, err
	}
	defer func() { _ = reader.Close() }() // temporary files
	all, err := reader.All(ctx, fleet)
	if err != nil {
		step.Fail(err)
		return nil, err
	}
	step.Done()
	out := make([]v1alpha1.LockedComponent, 0, len(all))
	for _, c := range all {
		out = append(out, c.LockedComponent)
	}
	return out, nil
}
