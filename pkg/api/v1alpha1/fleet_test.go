package v1alpha1

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

var versions = Defaults{FluxVersion: "v2.9.5", CAPIVersion: "v1.14.2"}

func TestSetDefaults(t *testing.T) {
	f := &Fleet{
		Metadata: Metadata{Name: "x"},
		Spec: FleetSpec{ManagementClusters: []ManagementCluster{
			{Name: "a", Providers: []Provider{{Name: "ipam", Type: ProviderIPAM}, {Name: "docker"}, {Name: "aws"}}},
			{Name: "b", Cloud: "own", Generation: "v2", Host: Host{Type: HostExisting}, Providers: []Provider{
				{Name: "cluster-api", Type: ProviderCore, Version: "v1.0.0"},
				{Name: "k3s", Type: ProviderControlPlane},
				{Name: "kubeadm", Type: ProviderBootstrap, URL: "https://example.org/fork"},
			}},
			{Name: "c"},
		}},
	}
	SetDefaults(f, versions)
	want := &Fleet{
		APIVersion: APIVersion, Kind: Kind, Metadata: Metadata{Name: "x"},
		Spec: FleetSpec{
			Git: Git{Branch: "main", Username: "git", Interval: "10s"},
			Flux: Flux{
				Version: "v2.9.5", Registry: "ghcr.io/fluxcd", NetworkPolicy: new(true),
				Components: []string{"source-controller", "kustomize-controller", "helm-controller", "notification-controller"},
			},
			ManagementClusters: []ManagementCluster{
				{Name: "a", Cloud: "docker", Generation: "v1", Host: Host{Type: HostKind}, Providers: []Provider{
					{Name: "ipam", Type: ProviderIPAM},
					{Name: "docker", Type: ProviderInfrastructure},
					{Name: "aws", Type: ProviderInfrastructure},
					{Name: "cluster-api", Type: ProviderCore, Version: "v1.14.2"},
					{Name: "kubeadm", Type: ProviderBootstrap, Version: "v1.14.2"},
					{Name: "kubeadm", Type: ProviderControlPlane, Version: "v1.14.2"},
				}},
				{Name: "b", Cloud: "own", Generation: "v2", Host: Host{Type: HostExisting}, Providers: []Provider{
					{Name: "cluster-api", Type: ProviderCore, Version: "v1.0.0"},
					{Name: "k3s", Type: ProviderControlPlane},
					{Name: "kubeadm", Type: ProviderBootstrap, URL: "https://example.org/fork"},
				}},
				{Name: "c", Cloud: "none", Generation: "v1", Host: Host{Type: HostKind}, Providers: []Provider{
					{Name: "cluster-api", Type: ProviderCore, Version: "v1.14.2"},
					{Name: "kubeadm", Type: ProviderBootstrap, Version: "v1.14.2"},
					{Name: "kubeadm", Type: ProviderControlPlane, Version: "v1.14.2"},
				}},
			},
		},
	}
	if diff := cmp.Diff(want, f, sameFleet); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	SetDefaults(f, Defaults{FluxVersion: "v9.9.9", CAPIVersion: "v9.9.9"})
	if diff := cmp.Diff(want, f, sameFleet); diff != "" {
		t.Errorf("a second time (-want +got)\n%s", diff)
	}
	remote := &Fleet{Spec: FleetSpec{Git: Git{URL: "git@example.org:a"}, Flux: Flux{NetworkPolicy: new(false)}}}
	SetDefaults(remote, versions)
	if remote.Spec.Git.Interval != "1m" || *remote.Spec.Flux.NetworkPolicy {
		t.Errorf("%+v", remote.Spec)
	}
}

func TestManagementCluster(t *testing.T) {
	fleet := func(names ...string) *Fleet {
		f := &Fleet{Metadata: Metadata{Name: "demo"}}
		for _, n := range names {
			f.Spec.ManagementClusters = append(f.Spec.ManagementClusters, ManagementCluster{Name: n})
		}
		return f
	}
	one := fleet("mgmt")
	for _, name := range []string{"", "mgmt"} {
		if m, err := one.ManagementCluster(name); err != nil || m != &one.Spec.ManagementClusters[0] {
			t.Errorf("%q: %v, %v", name, m, err)
		}
	}
	for _, tc := range []struct {
		fleet      *Fleet
		name, hint string
		code       int
		none       bool
	}{
		{fleet("a", "b"), "", "--management: a, b", diag.ExitUsage, false},
		{fleet("laptop", "cloud"), "lapptop", "did you mean laptop?", diag.ExitUsage, true},
		{fleet("laptop", "cloud"), "xyz", "laptop, cloud", diag.ExitUsage, true},
		{fleet(), "", "spec.managementClusters", diag.ExitFailure, true},
	} {
		m, err := tc.fleet.ManagementCluster(tc.name)
		if m != nil || err == nil || !strings.Contains(diag.Hint(err), tc.hint) || diag.Code(err) != tc.code ||
			errors.Is(err, ErrNoManagementCluster) != tc.none {
			t.Errorf("%q: %v, %v (hint %q, exit %d)", tc.name, m, err, diag.Hint(err), diag.Code(err))
		}
	}
}

func TestDirs(t *testing.T) {
	m := &ManagementCluster{Name: "a", Providers: []Provider{{Name: "in-cluster", Type: ProviderIPAM}, {Name: "docker"}, {Name: "aws"}}}
	if got := m.Dir(); got != "providers/docker/v1/mgmt" {
		t.Error(got)
	}
	m.Cloud, m.Generation = "edge", "v2"
	if got := m.Layout().Environment("staging"); got != "providers/edge/v2/clusters/staging" {
		t.Error(got)
	}
}

// A fleet with warnings loads. Validate returns the warnings with their places.
func TestWarnings(t *testing.T) {
	f, err := Decode("f.yaml", []byte(`apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: x}
spec:
  git:
    url: git@example.org:a
    caFile: ca.pem
  managementClusters:
    - name: a
      kubernetesVersion: v1.36.3
      host: {type: existing, existing: {context: c}}
      providers:
        - name: aws
          url: file:///srv/components.yaml
          variables:
            - {name: AWS_SECRET_ACCESS_KEY, value: x}
            - {name: REGION, value: AKIAIOSFODNN7EXAMPLE}
            - {name: TOKEN_FILE, value: /run/token}
            - {name: AWS_B64ENCODED_CREDENTIALS, value: Cg==}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range Validate(f) {
		if w.Severity != diag.SeverityWarning {
			t.Errorf("%+v", w)
		}
		got = append(got, w.String())
	}
	want := []string{
		"f.yaml:7:13: spec.git.caFile: only an https URL uses it, but the URL of this repository uses ssh",
		"f.yaml:10:26: spec.managementClusters[0].kubernetesVersion: an existing host has a version of its own",
		"f.yaml:14:16: spec.managementClusters[0].providers[0].url: only this machine has these components",
		"f.yaml:16:52: spec.managementClusters[0].providers[0].variables[0].value: this looks like a secret, and fleet.yaml goes into Git",
		"f.yaml:17:37: spec.managementClusters[0].providers[0].variables[1].value: this looks like a secret, and fleet.yaml goes into Git",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Validate applies the same rules to a fleet made in memory. Its findings have no places.
func TestValidateWithoutFile(t *testing.T) {
	findings := Validate(
		&Fleet{Spec: FleetSpec{ManagementClusters: []ManagementCluster{{Name: "a", Providers: []Provider{{Name: "x"}, {Name: "x"}}}}}})
	want := `apiVersion: required field is missing
kind: required field is missing
metadata.name: required field is missing
spec.managementClusters[0].providers[1]: provider "infrastructure x" exists already`
	if diff := cmp.Diff(want, findings.Error()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestSchemaIsThere(t *testing.T) {
	schema, err := os.ReadFile("fleet.schema.json")
	if err != nil || !strings.Contains(string(schema), `"fleetctl.dev/v1alpha1"`) {
		t.Errorf("no schema: %v", err)
	}
}

// A variable has one value for all providers of a management cluster, so two sources of one variable are an error, and one source twice is
// none.
func TestOneValueForAllProviders(t *testing.T) {
	one, two := "1", "2"
	const other = `provider aws declares the variable "X" in another way`
	for name, tc := range map[string]struct {
		first, second Variable
		want          string
	}{
		"the same":         {Variable{Name: "X", Value: &one}, Variable{Name: "X", Value: &one}, ""},
		"its own name":     {Variable{Name: "X"}, Variable{Name: "X", Env: "X"}, ""},
		"another value":    {Variable{Name: "X", Value: &one}, Variable{Name: "X", Value: &two}, other},
		"another source":   {Variable{Name: "X", File: "a"}, Variable{Name: "X", Env: "A"}, other},
		"another variable": {Variable{Name: "X", File: "a"}, Variable{Name: "Y", File: "b"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Fleet{Spec: FleetSpec{ManagementClusters: []ManagementCluster{{Name: "a", Providers: []Provider{
				{Name: "aws", Variables: []Variable{tc.first}}, {Name: "vsphere", Variables: []Variable{tc.second}},
			}}}}}
			if got := Validate(f).Error(); strings.Contains(got, other) != (tc.want != "") {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// Each provider without a version is named with its place in the file, and with the command that chooses one on its management cluster.
func TestWithoutVersion(t *testing.T) {
	const one = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  managementClusters:
  - name: first
    providers:
    - name: docker
      version: v1.14.0
    - name: aws
    - name: ipam-in-cluster
      type: ipam
`
	const two = one + "  - name: second\n    providers: [{name: aws}]\n"
	for _, tc := range []struct{ content, want string }{
		{one, "fleet.yaml:10:7: spec.managementClusters[0].providers[1]: infrastructure provider aws has no version " +
			"(`fleetctl init` chooses one, or name it in fleet.yaml)\n" +
			"fleet.yaml:11:7: spec.managementClusters[0].providers[2]: ipam provider ipam-in-cluster has no version " +
			"(`fleetctl init` chooses one, or name it in fleet.yaml)"},
		{two, "fleet.yaml:10:7: spec.managementClusters[0].providers[1]: infrastructure provider aws has no version " +
			"(`fleetctl init --management first` chooses one, or name it in fleet.yaml)\n" +
			"fleet.yaml:11:7: spec.managementClusters[0].providers[2]: ipam provider ipam-in-cluster has no version " +
			"(`fleetctl init --management first` chooses one, or name it in fleet.yaml)\n" +
			"fleet.yaml:14:17: spec.managementClusters[1].providers[0]: infrastructure provider aws has no version " +
			"(`fleetctl init --management second` chooses one, or name it in fleet.yaml)"},
	} {
		fleet, err := Decode("fleet.yaml", []byte(tc.content))
		if err != nil {
			t.Fatal(err)
		}
		SetDefaults(fleet, Defaults{FluxVersion: "v2.9.5", CAPIVersion: "v1.14.2"})
		if got := fleet.WithoutVersion().Error(); got != tc.want {
			t.Errorf("got:\n%s\nwant:\n%s", got, tc.want)
		}
	}
}
