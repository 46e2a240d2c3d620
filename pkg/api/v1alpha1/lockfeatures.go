package v1alpha1

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// LockedFeature is the Helm chart of a feature.
type LockedFeature struct {
	// Name of the feature.
	Name string `json:"name"`
	// Chart is the chart's address: oci://registry/path/chart or https://repository/chart.
	Chart string `json:"chart"`
	// Version of the chart.
	Version string `json:"version"`
	// SHA256 of the chart's archive, in hexadecimal. It is the same from a registry, from a repository and in a bundle.
	SHA256 string `json:"sha256"`
}

// String returns for example "chart https://charts.example.com/web 1.2.0 of feature web".
func (f LockedFeature) String() string {
	return fmt.Sprintf("chart %s %s of feature %s", f.Chart, f.Version, f.Name)
}

// Source splits the address of the chart. For oci:// it returns the chart's own URL and no name. Otherwise it returns the URL of the
// repository and the chart's name in it.
func (f LockedFeature) Source() (url, name string) {
	if i := strings.LastIndex(f.Chart, "/"); i > 0 && !strings.HasPrefix(f.Chart, "oci://") {
		return f.Chart[:i], f.Chart[i+1:]
	}
	return f.Chart, ""
}

func (v *validator) lockedFeatures(features []LockedFeature) {
	for i, f := range features {
		v.digest(fieldPath(itemPath("features", i), "sha256"), f.SHA256)
	}
	uniqueInLock(v, features, "features", "feature", func(f LockedFeature) string { return f.Name })
}

// FindFeature returns the entry of this feature with the same chart and version, or nil. l may be nil.
func (l *Lock) FindFeature(wanted LockedFeature) *LockedFeature {
	return l.findFeature(func(f LockedFeature) bool {
		return f.Name == wanted.Name && f.Chart == wanted.Chart && f.Version == wanted.Version
	})
}

// FindChart returns an entry with this chart, this version and a digest, or nil. l may be nil.
func (l *Lock) FindChart(chart, version string) *LockedFeature {
	return l.findFeature(func(f LockedFeature) bool { return f.Chart == chart && f.Version == version && f.SHA256 != "" })
}

func (l *Lock) findFeature(wanted func(LockedFeature) bool) *LockedFeature {
	if l == nil {
		return nil
	}
	i := slices.IndexFunc(l.Features, wanted)
	if i < 0 {
		return nil
	}
	return &l.Features[i]
}

// VerifyChart compares the digest of a chart's archive with every feature in the lock that uses this chart and version. It returns an error
// with a *ChartDigestError if they differ. l may be nil.
func (l *Lock) VerifyChart(chart, version, sha256 string) error {
	if l == nil {
		return nil
	}
	for _, f := range l.Features {
		if f.Chart == chart && f.Version == version && f.SHA256 != sha256 {
			return diag.Wrap("", &ChartDigestError{Feature: f, SHA256: sha256},
				"the release of that version has changed: find out who changed it and why. If the change is right, write the new digest "+
					"with `fleetctl lock`, and let somebody review it")
		}
	}
	return nil
}

// ChartDigestError says that the digest of a feature's chart differs from the lock.
type ChartDigestError struct {
	Feature LockedFeature // the entry in the lock
	SHA256  string        // the digest that was found
}

// Error names the chart and both digests.
func (e *ChartDigestError) Error() string {
	return fmt.Sprintf("%s does not match %s: its SHA-256 is %s, but the lock has %s", e.Feature, LockFileName, e.SHA256, e.Feature.SHA256)
}
