package fleetrepo

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

func TestProviders(t *testing.T) {
	r := open(t)
	e, err := r.AddProvider("cloud", v1alpha1.Provider{Name: "gcp"})
	diff, r := done(t, r, e, err)
	if !strings.Contains(diff, "+    - name: gcp\n") || !strings.Contains(diff, "+++ b/charts/gcp-gke/Chart.yaml\n") {
		t.Errorf("got:\n%s", diff)
	}
	e, err = r.AddProvider("cloud", v1alpha1.Provider{Name: "gcp"})
	if diff, _ := done(t, r, e, err); diff != "" {
		t.Errorf("a second time:\n%s", diff)
	}
	e, err = r.AddProvider("cloud", v1alpha1.Provider{Name: "aws", Version: "v2.13.0"})
	diff, r = done(t, r, e, err)
	if !strings.Contains(diff, "     - name: aws # the shop's account\n+      version: v2.13.0\n") {
		t.Errorf("got:\n%s", diff)
	}
	e, err = r.AddProvider("laptop", v1alpha1.Provider{Name: "in-cluster", Type: v1alpha1.ProviderIPAM})
	_, r = done(t, r, e, err)
	want := []Provider{
		{"laptop", "docker", "infrastructure", ""},
		{"laptop", "in-cluster", "ipam", ""},
		{"cloud", "aws", "infrastructure", "v2.13.0"},
		{"cloud", "gcp", "infrastructure", ""},
	}
	if diff := cmp.Diff(want, r.Providers()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := r.AddProvider("", v1alpha1.Provider{Name: "gcp"}); diag.Code(err) != diag.ExitUsage {
		t.Errorf("which management cluster? %v", err)
	}
	if _, err := r.AddProvider("cloud", v1alpha1.Provider{Name: "gcp", Type: "infra"}); err == nil ||
		!strings.Contains(err.Error(), `unknown provider type "infra"`) {
		t.Errorf("bad type: %v", err)
	}
}
