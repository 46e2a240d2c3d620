//go:build integration

package following_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

// Before anything of a hand-over is done, what would come along is tried where it is, and all else where it is to come to: a target that
// has none of the kinds yet gives no false alarm.
func TestRehearsalAhead(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	target, _ := kubetest.Start(t)
	report := &heard{Reporter: progress.Discard}
	e.Deps.Report = report
	s, err := session.Open(ctx, e.Deps, e.Options(t, "admin"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e.FollowSomething(ctx, t, e.Git.URL, "main", s.Mgmt.Dir())
	const service = "{apiVersion: v1, kind: Service, metadata: {namespace: default, name: NAME, labels: {kustomize.toolkit.fluxcd.io/name: " +
		"clusters}}, spec: {clusterIP: ADDRESS, ports: [{port: 80}]}}\n"
	of := func(name, address string) string {
		return strings.NewReplacer("NAME", name, "ADDRESS", address).Replace(service)
	}
	e.Apply(ctx, t, of("comes", "None"))
	e.Apply(ctx, t, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: child, labels: "+
		"{kustomize.toolkit.fluxcd.io/name: clusters}}}")
	if _, err := kubetest.ApplyYAML(ctx, target, []byte(of("there", "None")), kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(e.Dir, filepath.FromSlash(name)) }
	write := func(name, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(s.Mgmt.Dir()+"/clusters.yaml",
		"{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: clusters, namespace: flux-system}, "+
			"spec: {path: ./clusters, interval: 1m, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}}\n")
	travels := map[string]bool{}
	rehearse := func() error {
		return following.Rehearse(ctx, s, target, following.View{}, following.Rehearsal{
			Name: "target", Warn: report.Warn,
			Ahead: &flux.Ahead{Source: e.Client, Travels: func(ref kube.Ref) bool { return travels[ref.Name] }},
		})
	}
	write("clusters/other.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: other}}\n")
	if err := rehearse(); err != nil || len(report.warnings) > 0 {
		t.Errorf("on a target that has no kind of Flux's: %v, warnings %q", err, report.warnings)
	}
	travels["child"] = true
	if err := rehearse(); err == nil || !strings.Contains(err.Error(), "it would delete ConfigMap default/child") || diag.Hint(err) == "" {
		t.Errorf("what comes along, and Git does not have: %v", err)
	}
	write("clusters/child.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: child}}\n")
	travels["comes"] = true
	for _, name := range []string{"comes", "there"} {
		write("clusters/service.yaml", of(name, "10.0.0.77"))
		if err := rehearse(); err == nil || !strings.Contains(err.Error(), "Service default/"+name) {
			t.Errorf("%s, which is refused: %v", name, err)
		}
	}
	write("clusters/service.yaml", of("comes", "None"))
	if err := rehearse(); err != nil || len(report.warnings) > 0 {
		t.Errorf("what comes along as it is: %v, warnings %q", err, report.warnings)
	}
	for _, name := range []string{"other", "child"} { // a dry run makes nothing
		ref := kube.Ref{Key: kube.Key{Namespace: "default", Name: name}}
		ref.Version, ref.Kind = "v1", "ConfigMap"
		if there, err := target.Exists(ctx, ref.GroupVersionKind, ref.Key); err != nil || there {
			t.Errorf("%s is at the target: %v", name, err)
		}
	}
}
