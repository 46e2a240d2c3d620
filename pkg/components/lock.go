package components

import (
	"context"
	"fmt"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
)

// Locking says what Locked does with the digests that a lock has already.
type Locking int

const (
	// LockAgain compares them with what is read, and replaces those that differ.
	LockAgain Locking = iota
	// LockCheck is LockAgain to compare alone. Without a bundle to compare with, it leaves the entries that came from a bundle as they are.
	LockCheck
	// LockMore leaves them as they are, and adds the missing ones.
	LockMore
)

// Locked makes the content of fleet.lock for everything that a fleet installs, in Components and Images. If fleet.yaml leaves
// cert-manager's version open, Locked takes the version in lock; lock may be nil. A provider without a version is left out. Notes are for
// the reviewer of fleet.lock.
func (r *Reader) Locked(
	ctx context.Context,
	fleet *v1alpha1.Fleet,
	lock *v1alpha1.Lock,
	how Locking,
) (_ *v1alpha1.Lock, notes []string, _ error) {
	preferLocked(fleet, lock)
	taken := func(v1alpha1.LockedComponent) *Component { return nil }
	if how == LockCheck && r.folder == "" && lock != nil {
		taken = func(wanted v1alpha1.LockedComponent) *Component {
			if have := lock.Find(wanted); have != nil && have.Bundle {
				return &Component{LockedComponent: *have}
			}
			return nil
		}
	}
	all, err := r.read(ctx, fleet, taken)
	if err != nil {
		return nil, nil, err
	}
	out := &v1alpha1.Lock{}
	for _, c := range all {
		c.Bundle = c.Bundle || r.folder != ""
		if how == LockMore && lock != nil {
			if have := lock.Find(c.LockedComponent); have != nil {
				c.LockedComponent = *have
			}
		}
		out.Components = append(out.Components, c.LockedComponent)
	}
	for _, lacking := range fleet.WithoutVersion() {
		notes = append(notes, fmt.Sprintf("%s, so %s leaves it out: %s.", lacking.Summary, v1alpha1.LockFileName, lacking.Hint))
	}
	images, more, err := r.lockedImages(ctx, fleet, all, lock, how)
	out.Images = images
	return out, append(notes, more...), err
}

// preferLocked fills in the versions of cert-manager that fleet.yaml leaves open, from lock. If other management clusters name another
// version, the lock will have several, and then a reader of it cannot tell which one is meant: the versions stay open.
func preferLocked(fleet *v1alpha1.Fleet, lock *v1alpha1.Lock) {
	all := fleet.Spec.ManagementClusters
	for i := range all {
		certs := &all[i].CertManager
		locked := LockedVersion(lock, *certs)
		if certs.Version == "" && !slices.ContainsFunc(all, func(m v1alpha1.ManagementCluster) bool {
			return m.CertManager.URL == certs.URL && m.CertManager.Version != "" && m.CertManager.Version != locked
		}) {
			certs.Version = locked
		}
	}
}

// LockedVersion is the version of cert-manager in lock, or "" if lock has no version or several versions.
func LockedVersion(lock *v1alpha1.Lock, wanted v1alpha1.CertManager) string {
	version := ""
	if lock == nil {
		return ""
	}
	for _, c := range lock.Components {
		if c.Type != v1alpha1.ComponentCertManager || c.URL != wanted.URL {
			continue
		}
		if version != "" {
			return ""
		}
		version = c.Version
	}
	return version
}
