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

// String is "chart https://charts.example.com/web 1.2.0 of feature web".
func (f LockedFeature) String() string {
	return fmt.Sprintf("chart %s %s of feature %s", f.Chart, f.Version, f.Name)
}

// Source splits the address of the chart: the URL of the chart itself and no name for oci://, else that of the repository and the chart's
// name there.
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

// FindFeature returns the entry of that feature with that chart and version, or nil. l may be nil.
func (l *Lock) FindFeature(wanted LockedFeature) *LockedFeature {
	if l == nil {
		return nil
	}
	i := slices.IndexFunc(l.Features, func(f LockedFeature) bool {
		return f.Name == wanted.Name && f.Chart == wanted.Chart && f.Version == wanted.Version
	})
	if i < 0 {
		return nil
	}
	return &l.Features[i]
}

// VerifyChart compares the archive of a chart, whoever uses it, with what the lock has of that chart and version. sha256 is its digest.
func (l *Lock) VerifyChart(chart, version, sha256 string) error {
	if l == nil {
		return nil
	}
	for _, f := range l.Features {
		if f.Chart == chart && f.Version == version && f.SHA256 != sha256 {
			return diag.Wrap("", &ChartDigestError{Feature: f, SHA256: sha256},
				"somebody has changed what is released as that version: find out who and why. If it is right, `fleetctl lock` writes the new "+
					"digest, for review")
		}
	}
	return nil
}

// ChartDigestError means that the chart of a feature has another digest than in the lock.
type ChartDigestError struct {
	Feature LockedFeature // as it is locked
	SHA256  string        // as it was read
}

// Error names the chart and both digests.
func (e *ChartDigestError) Error() string {
	return fmt.Sprintf("%s is not what %s knows: its SHA-256 is %s, locked is %s", e.Feature, LockFileName, e.SHA256, e.Feature.SHA256)
}
