//go:build integration

package leaving_test

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/leaving"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

// A cluster that shares its HelmRelease with another one is not detached, because its HelmRelease would be suspended for both.
func TestDetachRefusesOneOfTwoClustersOfARelease(t *testing.T) {
	ctx := t.Context()
	e := standingtest.New(t)
	target := e.WithFlux(ctx, t)
	for _, name := range []string{"early", "late"} {
		w := standingtest.NewWorkload("team-a", name)
		w.Labels = map[string]string{"helm.toolkit.fluxcd.io/name": "both", "helm.toolkit.fluxcd.io/namespace": "team-a"}
		if err := e.Client.Create(ctx, w); err != nil {
			t.Fatal(err)
		}
	}
	r, err := leaving.Detach(ctx, e.Deps, leaving.DetachOptions{Target: target, Cluster: "early", DryRun: true})
	if err == nil || !strings.Contains(err.Error(), "HelmRelease team-a/both makes cluster team-a/early and also team-a/late") ||
		!strings.Contains(diag.Hint(err), "a HelmRelease of its own") {
		t.Errorf("%+v, %v: %s", r, err, diag.Hint(err))
	}
}
