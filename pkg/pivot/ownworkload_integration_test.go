//go:build integration

package pivot

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/resolve"
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

// A management cluster is refused as its own target before anything is kept or noted: by another address, and by the name of the workload
// cluster that it runs on.
func TestPivotToItself(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	s := e.TakeWithCluster(ctx, t)
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: wayThrough(t, e.Kubeconfig, "none", func() {})}
	config.Contexts["c"], config.CurrentContext = &clientcmdapi.Context{Cluster: "c"}, "c"
	elsewhere, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(story string, err error) {
		t.Helper()
		if diag.Code(err) != diag.ExitUsage || !strings.Contains(err.Error(), "is the management cluster mgmt itself") {
			t.Errorf("%s: %v", story, err)
		}
		if kept, err := readKept(s.Cluster); err != nil || kept != nil {
			t.Errorf("%s: this machine has kept %+v, %v", story, kept, err)
		}
		if _, err := e.Client.SecretValue(ctx, targetSecret, "target"); !kube.IsAbsent(err) {
			t.Errorf("%s: it has kept the way to itself: %v", story, err)
		}
	}
	given := filepath.Join(t.TempDir(), "elsewhere.kubeconfig")
	if err := os.WriteFile(given, elsewhere, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dry := range []bool{true, false} {
		_, err := Pivot(ctx, e.Deps, MoveOptions{Options: e.Options(t, "admin"), ToKubeconfig: given, DryRun: dry})
		refused(fmt.Sprintf("by another address, dry run %t", dry), err)
	}
	e.LeadInto(ctx, t, "alpha", elsewhere)
	p := NewMove(converge.NewRun(s), "alpha")
	_, err = p.reach(ctx, e.Client, &resolve.Manifests{}, &following.Pushed{Session: s}, nil)
	refused("by the name of its own Cluster", err)
}
