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
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

// heard is a reporter that keeps the warnings.
type heard struct {
	progress.Reporter

	warnings []string
}

func (h *heard) Warn(text string) { h.warnings = append(h.warnings, text) }

// A cluster takes over only where its Flux would delete nothing of what came along, and its API server takes what the fleet repo says.
func TestRehearsal(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	report := &heard{Reporter: progress.Discard}
	e.Deps.Report = report
	s, err := session.Open(ctx, e.Deps, e.Options(t, "admin"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e.FollowSomething(ctx, t, e.Git.URL, "main", s.Mgmt.Dir())
	for _, name := range []string{"theirs", "child"} {
		e.Apply(ctx, t, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: "+name+
			", labels: {kustomize.toolkit.fluxcd.io/name: clusters}}}")
	}
	e.Apply(ctx, t, "{apiVersion: v1, kind: Service, metadata: {namespace: default, name: fixed}, spec: {clusterIP: None, ports: [{port: "+
		"80}]}}")
	target := following.Rehearsal{Name: "target", Warn: report.Warn}
	write := func(name, content string) {
		t.Helper()
		file := filepath.Join(e.Dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(s.Mgmt.Dir()+"/clusters.yaml",
		"{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: clusters, namespace: flux-system}, "+
			"spec: {path: ./clusters, interval: 1m, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}}\n")
	write(s.Mgmt.Dir()+"/theirs.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: theirs}}\n")
	write("clusters/other.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: other}}\n")
	for _, step := range []struct{ file, content, says string }{
		{"", "", "it would delete ConfigMap default/child"},
		{"clusters/child.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: child}}\n", ""},
		{
			"clusters/fixed.yaml",
			"{apiVersion: v1, kind: Service, metadata: {namespace: default, name: fixed}, spec: {clusterIP: 10.0.0.77, ports: [{port: 80}]}}\n",
			"Service default/fixed, which Kustomization flux-system/clusters applies",
		},
	} {
		if step.file != "" {
			write(step.file, step.content)
		}
		err := following.Rehearse(ctx, s, e.Client, following.View{}, target)
		if step.says == "" && err != nil || step.says != "" && (err == nil || !strings.Contains(err.Error(), step.says) || diag.Hint(err) == "") {
			t.Errorf("with %q: got %v, hint %q", step.file, err, diag.Hint(err))
		}
	}
	if len(report.warnings) > 0 {
		t.Errorf("warnings: %q", report.warnings)
	}
	target.AcceptDeletions = true
	for _, name := range []string{"clusters/child.yaml", "clusters/fixed.yaml"} {
		if err := os.Remove(filepath.Join(e.Dir, filepath.FromSlash(name))); err != nil {
			t.Fatal(err)
		}
	}
	write("clusters/password.yaml", "{apiVersion: v1, kind: Secret, metadata: {namespace: default, name: password}, sops: {version: 3.9.0}}\n")
	if err := following.Rehearse(ctx, s, e.Client, following.View{}, target); err != nil {
		t.Errorf("with deletions that are accepted: %v", err)
	}
	says := strings.Join(report.warnings, "\n")
	for _, want := range []string{
		"it would delete ConfigMap default/child",
		"not tried with these: Secret default/password, which is encrypted",
	} {
		if !strings.Contains(says, want) {
			t.Errorf("the warnings %q lack %q", report.warnings, want)
		}
	}
	report.warnings = nil
	write("clusters/fixed.yaml", "no: object\n") // nobody knows then what Flux would do
	if err := following.Rehearse(ctx, s, e.Client, following.View{}, target); err != nil || len(report.warnings) != 1 ||
		!strings.Contains(report.warnings[0], "fixed.yaml") {
		t.Errorf("with a file that is no object: got %v, warnings %q", err, report.warnings)
	}
}
