//go:build integration

package cmd

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi/releases/releasestest"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/upgrade"
)

// releaseKind is Flux's kind of releases.
const releaseKind = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: helmreleases.helm.toolkit.fluxcd.io}
spec:
  group: helm.toolkit.fluxcd.io
  scope: Namespaced
  names: {plural: helmreleases, kind: HelmRelease}
  versions:
  - name: v2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// releaseOf is a HelmRelease, and what helm-controller says of the versions that it has installed, the newest first.
func releaseOf(namespace, name string, versions ...string) string {
	history := make([]string, 0, len(versions))
	for i, version := range versions {
		history = append(history, fmt.Sprintf("{name: %s, namespace: %s, version: %d, status: deployed, chartName: web, chartVersion: %q, "+
			"digest: sha256:1, configDigest: sha256:2, firstDeployed: %q, lastDeployed: %q}",
			name, namespace, len(versions)-i, version, "2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"))
	}
	return fmt.Sprintf(`apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: %s, namespace: %s}
spec: {interval: 10m, chartRef: {kind: OCIRepository, name: %s}}
status: {observedGeneration: 1, history: [%s]}
`, name, namespace, name, strings.Join(history, ", "))
}

// TestUpgradePlanOfFeatures plans with real HelmReleases: the installed version of a feature is that of the chart that helm-controller
// installed last, of the release of the feature, on a management cluster that has the feature.
func TestUpgradePlanOfFeatures(t *testing.T) {
	b := newPlanBed(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	b.declare("v1.14.1", "v1.14.1", "v1.11.5", "v2.7.0")
	index := "entries:\n"
	charts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(index)) }))
	t.Cleanup(charts.Close)
	for _, name := range []string{"web", "other", "failed", "elsewhere", "absent"} {
		index += "  " + name + ":\n  - {version: 1.2.0, urls: [a.tgz]}\n"
		files, err := scaffold.FeatureChartFiles(name, scaffold.FeatureChart{URL: "https://charts.example.com/" + name, Version: "1.2.0"})
		if err != nil {
			t.Fatal(err)
		}
		if name != "elsewhere" {
			at := layout.Layout{Cloud: "docker", Generation: "v1"}
			on, err := scaffold.EnableFeature(name, scaffold.FeatureTarget{Layout: at, Management: true})
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, on)
		}
		for _, f := range files {
			content := strings.ReplaceAll(string(f.Content), "https://charts.example.com", charts.URL)
			releasestest.WriteFile(t, filepath.Join(b.repo, f.Path), content)
		}
	}
	b.apply(ctx, "{apiVersion: v1, kind: Namespace, metadata: {name: "+flux.Namespace+"}}")
	b.apply(ctx, "{apiVersion: v1, kind: Namespace, metadata: {name: other}}")
	b.apply(ctx, olderFlux)
	b.apply(ctx, releaseKind)
	for _, release := range []string{
		releaseOf(flux.Namespace, "web", "1.1.0+1f2e3d4c5b6a", "1.0.0"), releaseOf("other", "other", "9.9.9"),
		releaseOf(flux.Namespace, "failed"), releaseOf(flux.Namespace, "elsewhere", "1.0.0"),
	} {
		b.apply(ctx, release)
	}
	_, stdout, stderr := b.run("-o", "json", "--offline")
	plan := b.plan(3)
	for name, want := range map[string]string{"web": "1.1.0+1f2e3d4c5b6a", "other": "", "failed": "", "elsewhere": "", "absent": ""} {
		i := slices.IndexFunc(plan.Components, func(c upgrade.Component) bool { return c.Type == upgrade.TypeFeature && c.Name == name })
		if i < 0 {
			t.Fatalf("no %s in %+v\n%s%s", name, plan.Components, stdout, stderr)
		}
		if c := plan.Components[i]; c.Installed != want || c.Declared != "1.2.0" || c.Newest != "1.2.0" || c.Changes() != (want != "") ||
			strings.Contains(c.Note, "Flux brings the version of the fleet repo to mgmt") != (want != "") {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
