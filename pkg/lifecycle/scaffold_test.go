package lifecycle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// A fleet repo that is made with a bundle has the versions of the bundle, as init would choose them.
func TestScaffoldTakesTheVersionsOfTheBundle(t *testing.T) {
	t.Setenv("GIT_AUTHOR_NAME", "Ada")
	t.Setenv("GIT_AUTHOR_EMAIL", "ada@example.com")
	t.Setenv("GIT_COMMITTER_NAME", "Ada")
	t.Setenv("GIT_COMMITTER_EMAIL", "ada@example.com")
	offline := bundleOf(t, map[string]string{
		"flux/v2.9.5/rbac.yaml":                                                               "kind: List\n",
		"cert-manager/v1.18.0/cert-manager.yaml":                                              "kind: List\n",
		"providers/cluster-api/v1.14.1/core-components.yaml":                                  "kind: List\n",
		"providers/bootstrap-kubeadm/v1.14.1/bootstrap-components.yaml":                       "kind: List\n",
		"providers/control-plane-kubeadm/v1.14.1/control-plane-components.yaml":               "kind: List\n",
		"providers/infrastructure-docker/v1.13.9/infrastructure-components-development.yaml":  "kind: List\n",
		"providers/infrastructure-docker/v1.14.1/infrastructure-components-development.yaml":  "kind: List\n",
		"providers/infrastructure-docker/v1.14.1/metadata.yaml":                               "kind: Metadata\n",
		"providers/infrastructure-vsphere/v1.15.0-rc.0/infrastructure-components.not-a-thing": "kind: List\n",
	})
	deps := management.Deps{
		Report: progress.Discard, Store: state.Store{Dir: t.TempDir()}, CacheDir: t.TempDir(),
		LookupEnv: func(string) (string, bool) { return "", false },
	}
	o := session.Options{Dir: filepath.Join(t.TempDir(), "acme"), Bundle: offline, HostType: "embedded"}
	o.Providers = []session.Provider{{Name: "docker"}}
	if _, err := Scaffold(t.Context(), deps, o); err != nil {
		t.Fatal(err)
	}
	fleet, err := v1alpha1.Load(filepath.Join(o.Dir, v1alpha1.FileName))
	if err != nil {
		t.Fatal(err)
	}
	m := fleet.Spec.ManagementClusters[0]
	if m.CertManager.Version != "v1.18.0" {
		t.Errorf("cert-manager %q", m.CertManager.Version)
	}
	for _, p := range m.Providers {
		if p.Version != "v1.14.1" {
			t.Errorf("provider %s %q", p.Name, p.Version)
		}
	}

	o.Dir = filepath.Join(t.TempDir(), "other")
	o.Providers[0].Name = "aws"
	_, err = Scaffold(t.Context(), deps, o)
	if err == nil || !strings.Contains(err.Error(), "the offline repository has no infrastructure-aws") {
		t.Errorf("%v, want that the bundle lacks the provider", err)
	}
	if _, err := os.Stat(filepath.Join(o.Dir, v1alpha1.FileName)); err == nil {
		t.Error("it wrote a fleet.yaml for which the bundle is of no use")
	}
}

func bundleOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bundle")
	w, err := bundle.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := w.AddFile(name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}
