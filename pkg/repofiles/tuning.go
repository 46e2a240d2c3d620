package repofiles

import (
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/repoaccess"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// systemFiles are those of flux-system that init writes. Flux's own manifests are ours to update; its kustomization.yaml is where the user
// customises them, and says whether the tuning has an effect.
func (c *Content) systemFiles(root string, present func(manifest.File) bool) ([]manifest.File, error) {
	all, err := flux.SystemFiles(c.Manifests.Flux, repoaccess.SyncOptions(c.Session, c.Endpoint))
	if err != nil {
		return nil, err
	}
	var files []manifest.File
	tuned := true
	for _, f := range all {
		if path.Base(f.Path) != flux.KustomizationFile || !present(f) {
			files = append(files, f)
			continue
		}
		if tuned, err = usesTuning(root, f.Path); err != nil {
			return nil, err
		}
		if !tuned && tunesFlux(c.Session) {
			return nil, diag.Errorf("add `- path: "+flux.TuningFile+"` to its patches, before others; one of yours that sets the same wins",
				"tune Flux on %s: %s does not use %s", c.Session.Mgmt.Name, f.Path, flux.TuningFile)
		}
	}
	if tuned {
		return files, nil
	}
	return slices.DeleteFunc(files, func(f manifest.File) bool { return path.Base(f.Path) == flux.TuningFile }), nil // nobody would read it
}

// usesTuning asks the kustomization.yaml in the fleet repo at root.
func usesTuning(root, name string) (bool, error) {
	content, err := within.ReadFile(root, name, fleetrepo.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, diag.Wrap("read "+name, err, "")
	}
	used, err := flux.UsesTuning(content)
	if err != nil {
		return false, diag.Wrap("read "+name, err, "correct it, or delete it for a new one")
	}
	return used, nil
}

// tunesFlux tells whether fleet.yaml tunes one of Flux's controllers.
func tunesFlux(s *session.Session) bool {
	return slices.ContainsFunc(s.Mgmt.Tuning,
		func(t v1alpha1.ManagerTuning) bool { return slices.Contains(v1alpha1.FluxComponents(), t.Manager) })
}
