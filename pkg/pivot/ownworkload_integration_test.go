//go:build integration

package pivot

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

// spoken keeps the warnings.
type spoken struct {
	progress.Reporter

	warnings string
}

func (s *spoken) Warn(text string) { s.warnings += text + "\n" }

// A kubeconfig of a workload cluster is as good as its name: a declared management cluster that had no init yet does not take over all that
// its parent has, and another workload cluster takes over under its own name.
func TestToTheKubeconfigOfAWorkloadCluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	e.TakeWithCluster(ctx, t)
	if err := e.Client.Create(ctx, standingtest.NewWorkload("team-a", "beta")); err != nil {
		t.Fatal(err)
	}
	alpha, toAlpha := kubetest.Start(t)
	beta, toBeta := kubetest.Start(t)
	heard := &spoken{Reporter: progress.Discard}
	e.Deps.Report = heard
	o := MoveOptions{Options: e.Options(t, "admin"), DryRun: true}
	file := filepath.Join(e.Dir, v1alpha1.FileName)
	fleet, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	fleet = []byte(strings.Replace(string(fleet), "  - name: mgmt\n", "  - name: mgmt\n    cloud: mgmt\n", 1) +
		"  - {name: alpha, parent: mgmt, cloud: alpha, providers: [{name: docker, version: v1.14.2}]}\n")
	if err := os.WriteFile(file, fleet, 0o600); err != nil {
		t.Fatal(err)
	}
	o.Cluster = "mgmt"
	pivot := func(kubeconfig []byte) (*MoveResult, error) {
		heard.warnings = ""
		o.ToKubeconfig = filepath.Join(t.TempDir(), "platform.kubeconfig")
		if err := os.WriteFile(o.ToKubeconfig, kubeconfig, 0o600); err != nil {
			t.Fatal(err)
		}
		return Pivot(ctx, e.Deps, o)
	}
	said := func(r *MoveResult, err error) string {
		if r != nil && r.Plan != nil {
			return r.Plan.Target
		}
		return err.Error() + " (" + diag.Hint(err) + ")"
	}
	if r, err := pivot(toBeta); r == nil || r.Plan.Target != "platform" || !strings.Contains(heard.warnings, "team-a/alpha") {
		t.Errorf("while none of them answers: %s\n%s", said(r, err), heard.warnings)
	}
	e.LeadInto(ctx, t, "alpha", toAlpha)
	e.LeadInto(ctx, t, "beta", toBeta)
	for name, dry := range map[string]bool{"dry run": true, "pivot": false} {
		o.DryRun = dry
		r, err := pivot(toAlpha)
		if text := said(r, err); diag.Code(err) != diag.ExitUsage ||
			!strings.Contains(text, "alpha is a management cluster with a folder of its own") ||
			!strings.Contains(text, "bootstrap --management alpha --stand-alone") {
			t.Errorf("%s: to a child: %s", name, text)
		}
	}
	o.DryRun = true
	if r, err := pivot(toBeta); r == nil || r.Plan.Target != "team-a/beta" || strings.Contains(heard.warnings, "alpha") {
		t.Errorf("to another workload cluster: %s\n%s", said(r, err), heard.warnings)
	}
	for name, c := range map[string]*kube.Client{"alpha": alpha, "beta": beta} {
		if claim, err := ownership.ReadClaim(ctx, c); err != nil || claim != nil {
			t.Errorf("%s is claimed: %+v, %v", name, claim, err)
		}
	}
}
