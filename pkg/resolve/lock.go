package resolve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/hosts"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// ReadComponents reads all that the fleet of the repo that dir is in installs, from an offline bundle or over the network, and returns what
// its lock is to say of it.
//
// With check, what the lock has from a bundle is compared with a bundle alone: a release has other bytes than what a bundle is built of.
// Notes are for who reviews it.
func ReadComponents(
	ctx context.Context, report progress.Reporter, dir, bundleFile, cacheDir string, check bool,
) (_ *v1alpha1.Lock, notes []string, err error) {
	top, err := fleetrepo.Find(dir)
	if err != nil {
		return nil, nil, err
	}
	fleet, err := v1alpha1.Load(filepath.Join(top, v1alpha1.FileName))
	if err != nil {
		return nil, nil, err
	}
	lock, err := v1alpha1.LoadLock(filepath.Join(top, v1alpha1.LockFileName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	step := report.Start("read components")
	ctx = contact.WithSilence(ctx, contact.Watched)
	reader, err := components.Open(ctx, bundleFile, cacheDir)
	if err != nil {
		step.Fail(err)
		return nil, nil, err
	}
	defer func() { _ = reader.Close() }() // temporary files
	how := components.LockAgain
	if check {
		how = components.LockCheck
	}
	locked, notes, err := reader.Locked(ctx, fleet, lock, how)
	if err != nil {
		step.Fail(err)
		return nil, nil, err
	}
	charts, err := fleetrepo.New(top, fleet).FeatureCharts()
	if err == nil {
		var more []string
		locked.Features, more, err = reader.LockedFeatures(ctx, charts, lock, check)
		notes = append(notes, more...)
	}
	if err != nil {
		step.Fail(err)
		return nil, nil, err
	}
	step.Done()
	return locked, notes, nil
}

// lockManifests notes what was read, and compares it with fleet.lock before any of it is installed.
func lockManifests(ctx context.Context, s *session.Session, m *Manifests) error {
	lock, err := LockOf(s)
	if err != nil {
		return err
	}
	certs, err := m.Source.CertManager(ctx)
	if err != nil {
		return err
	}
	read := []v1alpha1.LockedComponent{
		components.LockedFlux(s.Fleet.Spec.Flux, m.Flux.Digest),
		components.LockedCertManager(certs.Version, s.Mgmt.CertManager.URL, certs.YAML),
	}
	for _, p := range m.Providers {
		unread, err := m.Source.Unread(ctx, p)
		if err != nil {
			return err
		}
		read = append(read, v1alpha1.LockedComponent{
			Name: p.Name, Type: v1alpha1.ComponentType(p.Type), Version: p.Version, URL: p.URL, SHA256: components.Digest(unread.YAML),
		})
	}
	for i := range read {
		read[i].Bundle = s.Bundle != nil
	}
	var errs []error
	for _, c := range read {
		errs = append(errs, lock.Verify(c))
	}
	if s.Bundle != nil {
		errs = append(errs, components.VerifyBundledCharts(s.Bundle, lock))
	}
	m.locked = &v1alpha1.Lock{Components: read}
	return errors.Join(errs...)
}

// LockOf is the fleet repo's; nil where there is none.
func LockOf(s *session.Session) (*v1alpha1.Lock, error) {
	lock, err := v1alpha1.LoadLock(filepath.Join(s.Opts.Dir, v1alpha1.LockFileName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return lock, err
}

// lockImages compares the images of what is to be installed with fleet.lock, and pins them. What a bundle has is compared before a host
// gets it; what comes from a registry is pulled by the digest that is locked. An image that fleet.lock does not know is looked up; where no
// registry answers, it is run by its tag, as without a fleet.lock.
func lockImages(ctx context.Context, s *session.Session, m *Manifests) error {
	lock, err := LockOf(s)
	if err != nil {
		return err
	}
	images, err := m.imagesToLock(ctx)
	if err != nil {
		return err
	}
	source := &components.ImageSource{Bundle: s.Bundle, Mirrors: hosts.Mirrors(s.Mgmt.Host)}
	held, err := source.Hold(ctx, images, lock)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	}
	for _, note := range held.Notes {
		s.Deps.Report.Warn(note)
	}
	if len(held.Unknown) > 0 {
		s.Deps.Report.Warn(fmt.Sprintf(
			"The digests of %s could not be found out, so that they run by their tags: %v. `fleetctl lock` writes them to fleet.lock where the "+
				"registries answer.",
			plain.Count(len(held.Unknown), "image"), held.Err))
	}
	m.locked.Images = held.Locked
	pins := held.Pins()
	m.Flux.Pin(pins)
	for _, image := range images {
		if digest := pins[image.Name]; digest != "" {
			m.pinned = append(m.pinned, image.From+"@"+digest)
		}
	}
	return m.Source.Pin(pins)
}

// imagesToLock are those that the components name, as they were released.
func (m *Manifests) imagesToLock(ctx context.Context) ([]components.Image, error) {
	images := slices.Clone(m.Flux.Images)
	names, err := m.Source.CertManagerImages(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range m.Providers {
		more, err := m.Source.ImagesOf(ctx, p)
		if err != nil {
			return nil, err
		}
		names = append(names, more...)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		images = append(images, components.Image{Name: name, From: name})
	}
	return images, nil
}

// WithLock adds fleet.lock, where it does not know all that is installed, to the files that are written.
func (m *Manifests) WithLock(root string, files []manifest.File, present func(manifest.File) bool) ([]manifest.File, error) {
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
