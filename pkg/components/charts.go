package components

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// LockedFeatures returns what the lock is to say of the charts of features: the digests of their archives, from the bundle or else over the
// network. A chart that could not be read keeps its digest. One that has none is not locked; with check it is an error. Notes are for who
// reviews it.
func (r *Reader) LockedFeatures(
	ctx context.Context, charts []v1alpha1.LockedFeature, lock *v1alpha1.Lock, check bool,
) (out []v1alpha1.LockedFeature, notes []string, _ error) {
	digests, errs := make([]string, len(charts)), make([]error, len(charts))
	var group errgroup.Group
	group.SetLimit(downloads)
	for i, c := range charts {
		group.Go(func() error {
			digests[i], errs[i] = r.chartDigest(ctx, c)
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	var kept, unknown []error
	for i, c := range charts {
		have := lock.FindFeature(c)
		switch {
		case errors.Is(errs[i], bundle.ErrNotFound):
			notes = append(notes, fmt.Sprintf("The bundle has no %s, so its digest is not known from it.", c))
			if have != nil {
				out = append(out, *have)
			}
		case errs[i] != nil && have != nil:
			out, kept = append(out, *have), append(kept, errs[i])
		case errs[i] != nil:
			unknown = append(unknown, errs[i])
		default:
			c.SHA256 = digests[i]
			out = append(out, c)
			if have != nil && have.SHA256 != c.SHA256 {
				notes = append(notes, fmt.Sprintf("The digest of the %s differs from the locked one: %s instead of %s: find out why "+
					"before you commit it.", c, c.SHA256, have.SHA256))
			}
		}
	}
	if len(kept) > 0 {
		notes = append(notes, fmt.Sprintf("Not compared, so that fleet.lock keeps what it has of %s: %v",
			plain.Count(len(kept), "chart"), oncePerServer(kept)))
	}
	switch count := plain.Count(len(unknown), "chart"); {
	case len(unknown) > 0 && check:
		return nil, notes, diag.NotReady("`fleetctl lock` adds them where their registries answer", "fleet.lock lacks %s of features: %w", count,
			oncePerServer(unknown))
	case len(unknown) > 0:
		notes = append(notes, fmt.Sprintf("fleet.lock lacks the digest of %s of features, which could not be read; `fleetctl lock` adds it: %v",
			count, oncePerServer(unknown)))
	}
	return out, notes, nil
}

// chartDigest is the digest of a chart's archive.
func (r *Reader) chartDigest(ctx context.Context, c v1alpha1.LockedFeature) (string, error) {
	url, name := c.Source()
	ref := bundle.ChartRef{URL: url, Name: name, Version: c.Version}
	if r.bundle != nil {
		archive, err := r.bundle.Chart(ref)
		if err != nil {
			return "", err
		}
		r.charts.Keep(archive.Archive) // so that `fleetctl validate` renders it
		return Digest(archive.Archive), nil
	}
	fetched, err := bundle.FetchChart(ctx, nil, ref)
	if err != nil {
		return "", err
	}
	r.charts.Keep(fetched.Archive)
	return Digest(fetched.Archive), nil
}

// VerifyBundledCharts compares the charts of features in a bundle with the lock. A chart that the bundle lacks is no error.
func VerifyBundledCharts(b *bundle.Bundle, lock *v1alpha1.Lock) error {
	if lock == nil {
		return nil
	}
	var against []error
	for _, f := range lock.Features {
		url, name := f.Source()
		archive, err := b.Chart(bundle.ChartRef{URL: url, Name: name, Version: f.Version})
		switch {
		case errors.Is(err, bundle.ErrNotFound):
		case err != nil:
			against = append(against, err)
		default:
			against = append(against, lock.VerifyChart(f.Chart, f.Version, Digest(archive.Archive)))
		}
	}
	return errors.Join(against...)
}
