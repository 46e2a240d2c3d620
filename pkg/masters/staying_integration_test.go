//go:build integration

package masters

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi/credentials"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// A management cluster that stands alone keeps the credentials that its providers were given. The end of the bootstrap names them, and says
// how the key of AWS can go.
func TestTellsWhichCredentialsStayOnTheMaster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	r := openMasters(t, mastersFleet)
	d := deps(t)
	report := &heard{Reporter: progress.Discard}
	d.Report = report
	eu := standing(ctx, t, d, r.Dir, "eu")
	applyYAML(ctx, t, eu, "{apiVersion: v1, kind: Namespace, metadata: {name: "+credentials.Key.Namespace+"}}")
	m := &master{
		Deps: d, opts: Options{BootstrapOptions: lifecycle.BootstrapOptions{Options: session.Options{Dir: r.Dir}}, Master: masterOf(t, r)},
		result: &Result{Cluster: "eu", Parent: "root"},
	}
	m.tellStaying(ctx)
	if len(report.warnings) > 0 {
		t.Errorf("without credentials it says %q", report.warnings)
	}
	give := func(key string) {
		t.Helper()
		err := credentials.Change(ctx, eu, func(record *credentials.Record) {
			for name, values := range map[string]map[string]string{
				"aws": {"AWS_B64ENCODED_CREDENTIALS": key}, "docker": nil, "vsphere": {"VSPHERE_PASSWORD": "topsecret", "FEATURE": "true"},
			} {
				label := releases.Provider{Name: name, Type: releases.Infrastructure}.Label()
				record.Give(label, values, func(name string) bool { return name != "FEATURE" }, nil, time.Now())
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		report.warnings = nil
		m.tellStaying(ctx)
	}
	give("dG9wc2VjcmV0")
	said := strings.Join(report.warnings, "\n")
	for _, want := range []string{
		"the credentials of the provider aws stay on eu (AWS_B64ENCODED_CREDENTIALS): only a pivot takes them off",
		"give AWS_B64ENCODED_CREDENTIALS `value: Cg==`",
		"the credentials of the provider vsphere stay on eu (VSPHERE_PASSWORD): machines of vSphere have no identity ",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if len(report.warnings) != 2 || strings.Contains(said, "topsecret") || strings.Contains(said, "dG9wc2VjcmV0") {
		t.Errorf("it says\n%s", said)
	}
	give("Cg==")
	if len(report.warnings) != 1 || !strings.Contains(report.warnings[0], "vsphere") {
		t.Errorf("without a key of AWS it says %q", report.warnings)
	}
}
