package components

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/bundle"
)

// NewestChart is the newest version of a feature's chart.
type NewestChart struct {
	// Version is the newest version that fits, or the present one.
	Version string
	// Newer is a newer version that does not fit, and Why says why not.
	Newer, Why string
}

// ErrNotInBundle is the error of a chart that the bundle lacks.
var ErrNotInBundle = bundle.ErrNotFound

// NewestChart looks for the newest version of a feature's chart that fits: a release of the same major version, of which the Kubernetes
// versions of the clusters are in the chart's range. The error matches ErrNotInBundle if there is a bundle without this chart.
func (r *Reader) NewestChart(ctx context.Context, f v1alpha1.LockedFeature, kubernetes []string) (*NewestChart, error) {
	present, err := chartVersion(f.Version)
	if err != nil {
		return nil, err
	}
	url, name := f.Source()
	ref := bundle.ChartRef{URL: url, Name: name, Version: f.Version}
	listed, err := bundle.ChartVersions(ctx, r.bundle, ref)
	if err != nil {
		return nil, err
	}
	var versions []offered
	for _, text := range listed { // others may be tags of other artifacts
		if v, err := chartVersion(text); err == nil && v.GreaterThan(present) && (v.Prerelease() == "" || present.Prerelease() != "") {
			versions = append(versions, offered{v, text})
		}
	}
	if r.bundle != nil && len(listed) == 0 {
		return nil, ErrNotInBundle
	}
	slices.SortFunc(versions, func(a, b offered) int { return b.Compare(a.Version) })
	out := &NewestChart{Version: f.Version}
	looked := 0
	for _, v := range versions {
		ref.Version = v.text
		if name == "" {
			ref.Version = strings.ReplaceAll(v.text, "+", "_") // as Helm does, because a tag must not contain a plus
		}
		why := "is another major version"
		if v.Major() == present.Major() {
			if looked++; looked > mostLooked {
				break
			}
			if why, err = r.against(ctx, ref, kubernetes); err != nil {
				return nil, err
			}
		}
		if why == "" {
			out.Version = ref.Version
			break
		}
		if out.Newer == "" {
			out.Newer, out.Why = ref.Version, why
		}
	}
	return out, nil
}

// mostLooked bounds the versions of a chart that are fetched to find one that fits.
const mostLooked = 10

// offered is a version of a chart, and how the registry writes it.
type offered struct {
	*semver.Version
	text string
}

// against returns why a version of a chart does not fit the clusters, or "".
func (r *Reader) against(ctx context.Context, ref bundle.ChartRef, kubernetes []string) (string, error) {
	if len(kubernetes) == 0 {
		return "", nil
	}
	fetched, err := bundle.FetchChart(ctx, r.bundle, ref)
	if err != nil {
		return "", err
	}
	r.charts.Keep(fetched.Archive)
	wants, err := fetched.WantsKubernetes()
	if err != nil || wants == "" {
		return "", err
	}
	fits, err := semver.NewConstraint(wants)
	if err != nil {
		return "", fmt.Errorf("the range of Kubernetes versions of the chart %s: %w", ref, err)
	}
	for _, have := range kubernetes {
		if v, err := semver.NewVersion(have); err == nil && !fits.Check(v) {
			return fmt.Sprintf("wants Kubernetes %s, but a cluster that has the feature has %s", wants, have), nil
		}
	}
	return "", nil
}

// chartVersion parses the version of a chart. A tag has "_" for "+".
func chartVersion(text string) (*semver.Version, error) {
	return semver.StrictNewVersion(strings.TrimPrefix(strings.ReplaceAll(text, "_", "+"), "v"))
}

// LockChart returns the entry of a feature's chart with the digest of its archive, from the bundle or else over the network.
func (r *Reader) LockChart(ctx context.Context, f v1alpha1.LockedFeature) (v1alpha1.LockedFeature, error) {
	digest, err := r.chartDigest(ctx, f)
	f.SHA256 = digest
	return f, err
}
