package lifecycle

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/progress"
)

// ReadComponents reads all that the fleet of the repo that dir is in installs, from an offline bundle or over the network, and returns what its
// lock is to say of it.
//
// With check, what the lock has from a bundle is compared with a bundle alone: a release has other bytes than what a bundle is built of.
func ReadComponents(ctx context.Context, report progress.Reporter, dir, bundle, cacheDir string, check bool) (_ []v1alpha1.LockedComponent, err error) {
	top, err := fleetrepo.Find(dir)
	if err != nil {
		return nil, err
	}
	fleet, err := v1alpha1.Load(filepath.Join(top, v1alpha1.FileName))
	if err != nil {
		return nil, err
	}
	lock, err := v1alpha1.LoadLock(filepath.Join(top, v1alpha1.LockFileName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	step := report.Start("read components")
	reader, err := components.Open(ctx, bundle, cacheDir)
	if err != nil {
		step.Fail(err)
		return nil, err
	}
	defer func() { _ = reader.Close() }() // temporary files
	locked, err := reader.Locked(ctx, fleet, lock, check)
	if err != nil {
		step.Fail(err)
		return nil, err
	}
	step.Done()
	return locked, nil
}

// lockManifests notes what was read, and compares it with fleet.lock before any of it is installed.
func (s *session) lockManifests(ctx context.Context, m *manifests) error {
	lock, err := v1alpha1.LoadLock(filepath.Join(s.opts.Dir, v1alpha1.LockFileName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	certs, err := m.source.CertManager(ctx)
	if err != nil {
		return err
	}
	read := []v1alpha1.LockedComponent{
		components.LockedFlux(s.fleet.Spec.Flux, m.flux.Digest),
		components.LockedCertManager(certs.Version, s.mgmt.CertManager.URL, certs.YAML),
	}
	for _, p := range m.providers {
		unread, err := m.source.Unread(ctx, p)
		if err != nil {
			return err
		}
		read = append(read, v1alpha1.LockedComponent{
			Name: p.Name, Type: v1alpha1.ComponentType(p.Type), Version: p.Version, URL: p.URL, SHA256: components.Digest(unread.YAML),
		})
	}
	for i := range read {
		read[i].Bundle = s.bundle != nil
	}
	var errs []error
	for _, c := range read {
		errs = append(errs, lock.Verify(c))
	}
	m.locked = read
	return errors.Join(errs...)
}

// withLock adds fleet.lock, where it does not know all that is installed, to the files that are written.
func (m *manifests) withLock(root string, files []manifest.File, present func(manifest.File) bool) ([]manifest.File, error) {
	repo := fleetrepo.New(root, m.fleet)
	edit, err := repo.Relock(m.locked, files)
	if err != nil {
		return nil, err
	}
	if changed := edit.Changes.Files(); len(changed) > 0 {
		return append(files, changed...), nil
	}
	anew, err := repo.NewLock(m.locked, files)
	if err != nil {
		return nil, err
	}
	if !present(anew) { // an earlier run wrote it, and was killed before it committed it
		files = append(files, anew)
	}
	return files, nil
}
