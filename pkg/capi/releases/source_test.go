package releases

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/capi/releases/releasestest"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

func newTestSource(t *testing.T, opts SourceOptions) *Source {
	t.Helper()
	source, err := NewSource(opts)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func TestResolveFromFolder(t *testing.T) {
	root := releasestest.Repository(t)
	for _, v := range []string{"v1.9.0", "v1.15.0-beta.0"} { // neither an older version nor a pre-release is the newest
		releasestest.WriteFile(t, filepath.Join(root, "infrastructure-docker", v, "metadata.yaml"), releasestest.Metadata)
	}
	source := newTestSource(t, SourceOptions{Repository: root})
	got, err := source.Resolve(t.Context(), []Provider{{Name: "docker"}, {Name: "cluster-api", Type: Core, Version: "v1.14.2"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []Provider{
		{Name: "cluster-api", Type: Core, Version: "v1.14.2"},
		{Name: "kubeadm", Type: Bootstrap, Version: "v1.14.2"},
		{Name: "kubeadm", Type: ControlPlane, Version: "v1.14.2"},
		{Name: "docker", Type: Infrastructure, Version: "v1.14.2"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestResolveNamesAllThatIsMissing(t *testing.T) {
	source := newTestSource(t, SourceOptions{Repository: releasestest.Repository(t)})
	_, err := source.Resolve(t.Context(), []Provider{{Name: "azure"}, {Name: "nonsuch"}})
	if err == nil {
		t.Fatal("resolved providers that the folder lacks")
	}
	for _, want := range []string{"infrastructure-azure", "infrastructure-nonsuch"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

func TestUnknownProviderAndVersion(t *testing.T) {
	source := newTestSource(t, SourceOptions{Repository: releasestest.Repository(t)})
	_, err := source.Components(t.Context(), Provider{Name: "nonsuch", Version: "v1.0.0"})
	if err == nil || !strings.Contains(diag.Hint(err), providersBook) {
		t.Errorf("got %v, hint %q; want one that says where providers are listed", err, diag.Hint(err))
	}
	_, err = source.Components(t.Context(), Provider{Name: "docker", Version: "v9.9.9"})
	if err == nil || !strings.Contains(err.Error(), "only in v1.14.2") {
		t.Errorf("got %v; want one that says which versions there are", err)
	}
}

func TestVariables(t *testing.T) {
	root := releasestest.Repository(t)
	aws := Provider{Name: "aws", Version: "v1.14.2"}
	t.Setenv("AWS_B64ENCODED_CREDENTIALS", "from-the-environment") // clusterctl would read it, but a Source gets its values explicitly

	source := newTestSource(t, SourceOptions{Repository: root})
	got, err := source.Variables(t.Context(), aws)
	if err != nil {
		t.Fatal(err)
	}
	want := []Variable{
		{Name: "AWS_B64ENCODED_CREDENTIALS"},
		{Name: "LOG_LEVEL", HasDefault: true, Default: "0"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var missing *MissingVariablesError
	err = source.CheckVariables(t.Context(), []Provider{{Name: "docker", Version: "v1.14.2"}, aws})
	if !errors.As(err, &missing) || !slices.Equal(missing.Names, []string{"AWS_B64ENCODED_CREDENTIALS"}) {
		t.Fatalf("got %v; want the missing variable", err)
	}
	for _, text := range []string{"infrastructure provider aws", aws.DocumentationURL()} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%v does not say %q", err, text)
		}
	}
	if _, err := source.load(t.Context(), aws, false); !errors.As(err, &missing) {
		t.Errorf("loaded components without their variables: %v", err)
	}

	source = newTestSource(t, SourceOptions{Repository: root, Variables: map[string]string{"AWS_B64ENCODED_CREDENTIALS": "c2VjcmV0"}})
	if err := source.CheckVariables(t.Context(), []Provider{aws}); err != nil {
		t.Error(err)
	}
	components, err := source.load(t.Context(), aws, false)
	if err != nil {
		t.Fatal(err)
	}
	content, err := components.Yaml()
	if err != nil || !strings.Contains(string(content), "credentials: c2VjcmV0") {
		t.Errorf("the variable was not filled in: %v", err)
	}
}

func TestComponentsAndImages(t *testing.T) {
	root := releasestest.Repository(t)
	// The user's own overrides must have no effect.
	overrides := filepath.Join(t.TempDir(), "cluster-api", "overrides", "infrastructure-docker", "v1.14.2")
	releasestest.WriteFile(t, filepath.Join(overrides, "infrastructure-components-development.yaml"), "overridden: true")
	t.Setenv("XDG_CONFIG_HOME", filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(overrides)))))

	source := newTestSource(t, SourceOptions{Repository: root})
	manifest, err := source.Components(t.Context(), Provider{Name: "docker"})
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Version != "v1.14.2" || manifest.File != "infrastructure-components-development.yaml" ||
		strings.Contains(string(manifest.YAML), "overridden") || !strings.Contains(string(manifest.Metadata), "contract: v1beta2") {
		t.Errorf("got %s %s %s", manifest.Version, manifest.File, manifest.Metadata)
	}
	certs, err := source.CertManager(t.Context())
	if err != nil || certs.Version != "v1.11.5" {
		t.Errorf("cert-manager: %+v, %v", certs, err)
	}
	images, err := source.Images(t.Context(), []Provider{{Name: "docker", Version: "v1.14.2"}, {Name: "aws", Version: "v1.14.2"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"example.com/infrastructureaws:v1", "example.com/infrastructuredocker:v1",
		"quay.io/jetstack/cert-manager-webhook:v1.11.5",
	}
	if diff := cmp.Diff(want, images); diff != "" {
		t.Error(diff)
	}
}

func TestCertManagerVersion(t *testing.T) {
	root := releasestest.Repository(t)
	releasestest.WriteFile(t, filepath.Join(root, "cert-manager", "v1.12.0", "cert-manager.yaml"), releasestest.CertManager)
	for wanted, got := range map[string]string{"": "v1.12.0", "v1.11.5": "v1.11.5"} {
		manifest, err := newTestSource(t, SourceOptions{Repository: root, CertManagerVersion: wanted}).CertManager(t.Context())
		if err != nil || manifest.Version != got {
			t.Errorf("asked for %q: %+v, %v", wanted, manifest, err)
		}
	}
	if _, err := newTestSource(t, SourceOptions{Repository: root, CertManagerVersion: "v1.0.0"}).CertManager(t.Context()); err == nil {
		t.Error("found a version that is not there")
	}
}

func TestLabels(t *testing.T) {
	for label, p := range map[string]Provider{
		"cluster-api":             {Name: "cluster-api", Type: Core},
		"bootstrap-kubeadm":       {Name: "kubeadm", Type: Bootstrap},
		"control-plane-kubeadm":   {Name: "kubeadm", Type: ControlPlane},
		"infrastructure-aws":      {Name: "aws"},
		"ipam-in-cluster":         {Name: "in-cluster", Type: IPAM},
		"addon-helm":              {Name: "helm", Type: Addon},
		"runtime-extension-caren": {Name: "caren", Type: RuntimeExtension},
	} {
		if got := p.Label(); got != label {
			t.Errorf("%s has label %s, want %s", p, got, label)
		}
		if got := TypeOf(p.ClusterctlType()); got != p.Type && p.Type != "" {
			t.Errorf("%s came back as %s", p.Type, got)
		}
	}
}

func TestKnown(t *testing.T) {
	known, err := Known()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(known, func(p Provider) bool { return p.Name == "aws" && p.Type == Infrastructure && p.URL != "" }) {
		t.Errorf("aws is not among %d known providers", len(known))
	}
}
