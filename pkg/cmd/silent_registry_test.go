package cmd

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi/releases/releasestest"
	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// A registry that takes the connection, and then says nothing, holds a plan up for some seconds, however many charts come from there. The
// error names it, and the rest of the plan is there.
func TestUpgradePlanWithASilentRegistry(t *testing.T) {
	isolate(t)
	var asked atomic.Int32
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	registry := strings.TrimPrefix(silent.URL, "http://")
	repo, local := t.TempDir(), releasestest.Repository(t)
	releasestest.WriteFile(t, filepath.Join(repo, "fleet.yaml"), strings.ReplaceAll(`apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  flux: {version: v2.8.0}
  environments: [{name: dev}]
  managementClusters:
  - name: mgmt
    host: {type: kind}
    certManager: {version: v1.11.5, url: "file://LOCAL/cert-manager/v1.11.5/cert-manager.yaml"}
    providers:
    - {name: docker, version: v1.14.2, url: "file://LOCAL/infrastructure-docker/latest/infrastructure-components-development.yaml"}
    - {name: cluster-api, type: core, version: v1.14.2, url: "file://LOCAL/cluster-api/latest/core-components.yaml"}
    - {name: kubeadm, type: bootstrap, version: v1.14.2, url: "file://LOCAL/bootstrap-kubeadm/latest/bootstrap-components.yaml"}
    - {name: kubeadm, type: control-plane, version: v1.14.2, url: "file://LOCAL/control-plane-kubeadm/latest/control-plane-components.yaml"}
`, "LOCAL", local))
	state, cache := t.TempDir(), t.TempDir()
	run := func(args ...string) (code int, stdout, stderr string) {
		var out, errs bytes.Buffer
		args = append(args, "-C", repo, "--state-dir", state, "--cache-dir", cache, "--no-color")
		code = Main(t.Context(), ui.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, args)
		return code, out.String(), errs.String()
	}
	for _, name := range []string{"one", "two", "three"} {
		files, err := scaffold.FeatureChartFiles(name, scaffold.FeatureChart{URL: "oci://" + registry + "/charts/" + name, Version: "1.0.0"})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			releasestest.WriteFile(t, filepath.Join(repo, f.Path), string(f.Content))
		}
	}
	begun := time.Now()
	code, stdout, stderr := run("upgrade", "plan")
	if took := time.Since(begun); took > 2*contact.Watched+contact.Limit {
		t.Errorf("it took %s", took)
	}
	if code != diag.ExitFailure || !strings.Contains(stderr, registry+" was reached, but then sent or took almost nothing for 10s") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	for _, row := range []string{"feature one ", "feature two ", "feature three ", "infrastructure docker "} {
		if !strings.Contains(stdout, row) {
			t.Errorf("no %q in\n%s", row, stdout)
		}
	}
	if got := asked.Load(); got > 6 {
		t.Errorf("it was asked %d times", got)
	}
}
