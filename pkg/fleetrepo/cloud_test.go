package fleetrepo

import (
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

const cloudsFleet = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  environments:
  - name: dev
  managementClusters:
  - name: mgmt
    kubernetesVersion: v1.36.3
    providers: [{name: docker}, {name: aws}, {name: openstack}, {name: digitalocean}, {name: metal3}]
`

func cloudsRepo(t *testing.T, fleet string) *Repo {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, v1alpha1.FileName, []byte(fleet))
	return reopen(t, dir)
}

// The cloud of a team's own flavour is that of the infrastructure objects in its chart, however its template writes them.
func TestNamesOfClouds(t *testing.T) {
	for kind, want := range map[string]string{
		"OpenStackCluster": "openstack", "AWSManagedCluster": "aws", "DOCluster": "digitalocean", "Metal3Cluster": "metal3",
		"DockerMachineTemplate": "docker", "LinodeCluster": "linode-linode", "OscCluster": "outscale", "RemoteCluster": "k0sproject-k0smotron",
		"MetalStackCluster": "metal-stack", "OwnCluster": "acme-own", "DevCluster": "docker",
		"NutanixCluster": "docker", "UnheardOfCluster": "docker", // no provider of the fleet: the home
	} {
		for _, format := range []string{
			"apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: %\n",
			"kind: Cluster\nspec:\n  ref:\n    apiGroup: infrastructure.cluster.x-k8s.io\n    kind: \"%\"\n",
			"kind: %\nmetadata:\n  name: x\n  labels:\n    kind: VSphereCluster\napiVersion: infrastructure.cluster.x-k8s.io/v1beta1\n",
			"apiVersion: infrastructure.cluster.x-k8s.io/v1beta1 # of CAPI v1.9\n# as it was\n{{- if .Values.x }}\nkind: %\n{{- end }}\n",
			"  infrastructureRef: {kind: %, name: x, apiGroup: infrastructure.cluster.x-k8s.io}\n",
			"kind: List\nitems:\n- kind: %\n  apiVersion: 'infrastructure.cluster.x-k8s.io/v1beta1'\n- kind: VSphereCluster\n",
			"{\n  \"kind\": \"%\",\n  \"apiVersion\": \"infrastructure.cluster.x-k8s.io/v1beta1\"\n}\n",
			"kind: VSphereCluster\n---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: %\n---\nkind: VSphereCluster\n",
			"#apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\n#kind: VSphereCluster\n" +
				"apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: %\n",
		} {
			r := cloudsRepo(t, strings.Replace(cloudsFleet, "{name: metal3}", "{name: metal3}, {name: linode-linode}, {name: outscale}, "+
				"{name: k0sproject-k0smotron}, {name: metal-stack}, {name: vsphere}, {name: acme-own, url: https://example.com/x.yaml}", 1))
			write(t, r.Dir, "charts/ours/templates/cluster.yaml", []byte(strings.Replace(format, "%", kind, 1)))
			if at := r.layoutFor(&r.Fleet.Spec.ManagementClusters[0], "dev", "ours"); at.Cloud != want {
				t.Errorf("%s in %q: it stands in %s, want %s", kind, format, at.Cloud, want)
			}
		}
	}
}

// A cluster of a team's own chart needs the provider of the chart's kinds, as one of fleetctl's flavours does.
func TestProviderOfOwnChart(t *testing.T) {
	const second = "  - {name: second, kubernetesVersion: v1.36.3, generation: v2, providers: [{name: docker}]}\n"
	for name, tc := range map[string]struct{ fleet, kind, management, failed, hint string }{
		"declared": {fleet: cloudsFleet, kind: "OpenStackCluster"},
		"not declared": {
			fleet: cloudsFleet, kind: "NutanixCluster",
			failed: "management cluster mgmt cannot make clusters of flavour ours: it has no infrastructure provider nutanix",
			hint:   "`fleetctl provider add nutanix --management mgmt`",
		},
		"the only one that can": {fleet: cloudsFleet + second, kind: "OpenStackCluster"},
		"the other one": {
			fleet: cloudsFleet + second, kind: "OpenStackCluster", management: "second",
			failed: "management cluster second cannot make clusters of flavour ours: it has no infrastructure provider openstack",
			hint:   "`fleetctl provider add openstack --management second`",
		},
		"no one": {
			fleet: cloudsFleet + second, kind: "NutanixCluster",
			failed: "no management cluster of the fleet can make clusters of flavour ours: none has an infrastructure provider nutanix",
			hint:   "`fleetctl provider add nutanix --management NAME`",
		},
		"kinds that nobody knows": {fleet: cloudsFleet, kind: "UnheardOfCluster"},
		"a provider whose kinds nobody knows": {
			fleet: strings.Replace(cloudsFleet, "{name: metal3}", "{name: fork, url: https://example.com/x.yaml}", 1), kind: "NutanixCluster",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := cloudsRepo(t, tc.fleet)
			write(t, r.Dir, "charts/ours/Chart.yaml", []byte("apiVersion: v2\nname: ours\nversion: 1.0.0\n"))
			write(t, r.Dir, "charts/ours/templates/cluster.yaml",
				[]byte("apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: "+tc.kind+"\n"))
			if offered := slices.Contains(r.FlavoursToOffer(), "ours"); offered == strings.Contains(tc.failed, "nutanix") {
				t.Errorf("offered: %v", offered)
			}
			_, err := r.Add(AddOptions{Name: "x", Environment: "dev", Flavour: "ours", ManagementCluster: tc.management})
			if tc.failed == "" && err == nil {
				return
			}
			if err == nil || err.Error() != tc.failed || !strings.Contains(diag.Hint(err), tc.hint) {
				t.Errorf("got %v (%s), want %q (%s)", err, diag.Hint(err), tc.failed, tc.hint)
			}
		})
	}
}

// A provider stays while it makes clusters of a team's own chart, also in the home's folder.
func TestProviderOfOwnChartIsUsed(t *testing.T) {
	for _, provider := range []string{"docker", "openstack"} {
		r := cloudsRepo(t, cloudsFleet)
		kind := map[string]string{"docker": "DockerCluster", "openstack": "OpenStackCluster"}[provider]
		write(t, r.Dir, "charts/ours/Chart.yaml", []byte("apiVersion: v2\nname: ours\nversion: 1.0.0\n"))
		write(t, r.Dir, "charts/ours/templates/cluster.yaml",
			[]byte("apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: "+kind+"\n"))
		e, err := r.Add(AddOptions{Name: "x", Environment: "dev", Flavour: "ours"})
		_, r = done(t, r, e, err)
		for _, other := range []string{"aws", "digitalocean"} {
			if _, err := r.RemoveProvider("", v1alpha1.Provider{Name: other}); err != nil {
				t.Errorf("%s, which makes none: %v", other, err)
			}
		}
		_, err = r.RemoveProvider("", v1alpha1.Provider{Name: provider})
		if want := "provider " + provider + " makes the machines of dev/x"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A cluster of a team's own chart goes to no management cluster without the provider, also not to one in a repository of its own, which
// has the chart only afterwards.
func TestTransferOfOwnChart(t *testing.T) {
	r := cloudsRepo(t, cloudsFleet+"  - {name: second, kubernetesVersion: v1.36.3, generation: v2, providers: [{name: docker}]}\n")
	into := cloudsRepo(t, strings.Replace(cloudsFleet, "{name: openstack}, ", "", 1))
	write(t, r.Dir, "charts/ours/Chart.yaml", []byte("apiVersion: v2\nname: ours\nversion: 1.0.0\n"))
	write(t, r.Dir, "charts/ours/templates/cluster.yaml",
		[]byte("apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: OpenStackCluster\n"))
	e, err := r.Add(AddOptions{Name: "x", Environment: "dev", Flavour: "ours"})
	_, r = done(t, r, e, err)
	_, within := r.Transfer(TransferOptions{Cluster: "x", To: "second"})
	_, beyond := r.TransferInto(into, TransferOptions{Cluster: "x", To: "mgmt"}, nil)
	for to, err := range map[string]error{"second": within, "mgmt": beyond} {
		want := "management cluster " + to + " cannot make clusters of flavour ours: it has no infrastructure provider openstack"
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// The home's folder has the name of the home's provider. Without the provider, fleet.yaml names the folder. While there are folders of
// other clouds beside it, the provider cannot be removed.
func TestProviderOfTheHomeStays(t *testing.T) {
	r := cloudsRepo(t, cloudsFleet)
	write(t, r.Dir, "providers/docker/v1/mgmt/x.yaml", []byte("a: b\n"))
	e, err := r.RemoveProvider("", v1alpha1.Provider{Name: "docker"})
	if err != nil {
		t.Fatal(err)
	}
	if diff, err := difference(e, r.Dir); err != nil || !strings.Contains(diff, "cloud: docker") {
		t.Errorf("the folder is not the management cluster's any more: %v\n%s", err, diff)
	}
	write(t, r.Dir, "providers/aws/v1/clusters/dev/x/cluster.yaml", []byte("a: b\n"))
	_, err = r.RemoveProvider("", v1alpha1.Provider{Name: "docker"})
	if err == nil || !strings.Contains(err.Error(), "providers/aws/v1 is beside it") {
		t.Errorf("got %v", err)
	}
}

// Two management clusters cannot have the same folder, also not for clusters of a further cloud.
func TestFolderOfAnothersCloud(t *testing.T) {
	r := cloudsRepo(t, cloudsFleet)
	write(t, r.Dir, "providers/aws/v1/clusters/dev/x/cluster.yaml", []byte("a: b\n"))
	m := v1alpha1.ManagementCluster{Name: "second", Providers: []v1alpha1.Provider{{Name: "aws"}}, KubernetesVersion: "v1.36.3"}
	e, err := r.AddManagementCluster(m)
	if err != nil {
		t.Fatal(err)
	}
	if diff, err := difference(e, r.Dir); err != nil || !strings.Contains(diff, "generation: v2") {
		t.Errorf("%v\n%s", err, diff)
	}
	m.Generation = "v1"
	if _, err := r.AddManagementCluster(m); err == nil || !strings.Contains(err.Error(), "has the clusters of management cluster mgmt") {
		t.Errorf("got %v", err)
	}
}

// A transfer moves a cluster, and its tenants, to the folders of the cluster's cloud at the other management cluster.
func TestTransferBetweenClouds(t *testing.T) {
	const fleet = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  environments: [{name: dev}]
  managementClusters:
  - {name: here, kubernetesVersion: v1.36.3, providers: [{name: docker}, {name: aws}]}
  - {name: there, kubernetesVersion: v1.36.3, generation: v2, providers: [{name: azure}, {name: aws}]}
  - {name: own, kubernetesVersion: v1.36.3, cloud: eu, providers: [{name: aws}]}
`
	r := cloudsRepo(t, fleet)
	edit := func(e *Edit, err error) {
		t.Helper()
		_, r = done(t, r, e, err)
	}
	for _, m := range []string{"azure/v2", "docker/v1", "eu/v1"} {
		write(t, r.Dir, "providers/"+m+"/mgmt/flux-system/x.yaml", []byte("a: b\n"))
	}
	edit(r.AddTenant("shop", TenantOptions{}))
	edit(r.Add(AddOptions{
		Name: "x", Environment: "dev", Flavour: "aws-kubeadm", ManagementCluster: "here", Set: mustAssign(t, "region=eu-central-1"),
	}))
	for _, step := range []struct{ to, cloud, tenants string }{
		{"there", "aws/v2", "aws"}, {"own", "eu/v1", "eu"}, {"here", "aws/v1", "aws"},
	} {
		edit(r.Transfer(TransferOptions{Cluster: "x", To: step.to, AcceptDifferences: true}))
		dir := "providers/" + step.cloud + "/clusters/dev"
		c, err := r.Cluster("x")
		if err != nil || c.File != dir+"/x/cluster.yaml" || c.ManagementCluster != step.to || !r.exists(dir+"/chart-aws-kubeadm.yaml") {
			t.Fatalf("to %s: %+v, %v", step.to, c, err)
		}
		tenant, err := r.read(dir + "/common/apps/tenants/shop.yaml")
		if err != nil || !strings.Contains(string(tenant), "path: ./tenants/"+step.tenants+"/dev/shop\n") {
			t.Errorf("to %s: %v\n%s", step.to, err, tenant)
		}
		if !r.exists("tenants/" + step.tenants + "/dev/shop/kustomization.yaml") {
			t.Errorf("to %s: it has lost its tenant", step.to)
		}
		m, err := r.managementCluster(step.to)
		if err != nil || !r.exists(r.LayoutOf(*c).ClustersFile("dev")) || r.LayoutOf(*c).Management() != m.Dir() {
			t.Errorf("to %s: nothing applies it", step.to)
		}
	}
}

// A command about an environment covers the environment's folders in all clouds.
func TestNotificationOfClouds(t *testing.T) {
	r := cloudsRepo(t, cloudsFleet)
	edit := func(e *Edit, err error) string {
		t.Helper()
		var diff string
		diff, r = done(t, r, e, err)
		return lines(diff)
	}
	const file = "providers/docker/v1/mgmt/notifications/chat.yaml"
	edit(r.AddNotification(v1alpha1.Notification{
		Name: "chat", Type: v1alpha1.NotifySlack, Environments: []string{"dev"}, Secret: "chat", Channel: "fleet",
	}))
	add := func(name, flavour string) AddOptions {
		return AddOptions{Name: name, Environment: "dev", Flavour: flavour, Values: map[string]any{"region": "eu-central-1"}}
	}
	if got := edit(r.Add(add("x", "aws-kubeadm"))); !strings.Contains(got, "+    name: clusters-dev.aws\n") {
		t.Errorf("it does not tell of the second cloud:\n%s", got)
	}
	content, err := r.read(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := edit(r.Add(add("other", "aws-eks"))); strings.Contains(got, "clusters-dev.aws") {
		t.Errorf("it tells twice:\n%s", got)
	}
	again, err := r.read(file)
	if err != nil || string(again) != string(content) {
		t.Errorf("%v\n%s", err, again)
	}
}

// With the provider of a cloud, a notification loses the environment's folder in that cloud.
func TestNotificationOfFormerCloud(t *testing.T) {
	r := cloudsRepo(t, cloudsFleet)
	write(t, r.Dir, "providers/aws/v1/clusters/dev/common/kustomization.yaml", []byte("resources: []\n"))
	e, err := r.AddNotification(v1alpha1.Notification{Name: "chat", Type: v1alpha1.NotifySlack, Environments: []string{"dev"}, Secret: "chat"})
	diff, r := done(t, r, e, err)
	if !strings.Contains(diff, "+    name: clusters-dev.aws\n") {
		t.Fatalf("it does not tell of the second cloud:\n%s", diff)
	}
	e, err = r.RemoveProvider("", v1alpha1.Provider{Name: "aws"})
	if diff, _ := done(t, r, e, err); !strings.Contains(diff, "-    name: clusters-dev.aws\n") || len(e.LeftAlone) > 0 {
		t.Errorf("it leaves alone %q, and changes\n%s", e.LeftAlone, diff)
	}
}

// A provider to remove needs a type only if several types have its name, and none of them is infrastructure.
func TestTypeOfTheProviderToRemove(t *testing.T) {
	named := func(name string, of v1alpha1.ProviderType) v1alpha1.Provider {
		return v1alpha1.Provider{Name: name, Type: of}
	}
	m := v1alpha1.ManagementCluster{Name: "mgmt", Providers: []v1alpha1.Provider{
		{Name: "aws"},
		named("in-cluster", v1alpha1.ProviderIPAM), named("kubeadm", v1alpha1.ProviderBootstrap),
		named("kubeadm", v1alpha1.ProviderControlPlane), named("both", v1alpha1.ProviderAddon), named("both", v1alpha1.ProviderInfrastructure),
	}}
	for _, tc := range []struct {
		p          v1alpha1.Provider
		want       v1alpha1.ProviderType
		said, hint string
	}{
		{named("aws", ""), v1alpha1.ProviderInfrastructure, "", ""},
		{named("in-cluster", ""), v1alpha1.ProviderIPAM, "", ""},
		{named("both", ""), v1alpha1.ProviderInfrastructure, "", ""},
		{named("both", v1alpha1.ProviderAddon), v1alpha1.ProviderAddon, "", ""},
		{
			named("kubeadm", ""), v1alpha1.ProviderInfrastructure, `there is no infrastructure provider "kubeadm"`,
			"give its type: --type bootstrap or --type control-plane",
		},
		{
			named("in-cluster", v1alpha1.ProviderCore), v1alpha1.ProviderCore, `there is no core provider "in-cluster"`,
			"give its type: --type ipam",
		},
		{
			named("in-clustr", ""), v1alpha1.ProviderInfrastructure, `there is no provider "in-clustr"`,
			"did you mean in-cluster? There are: aws, both, in-cluster, kubeadm",
		},
		{named("x", v1alpha1.ProviderCore), v1alpha1.ProviderCore, `there is no core provider "x"`, "management cluster mgmt has none"},
	} {
		said, err := "", unknownProvider(tc.p, m)
		if err != nil {
			said = err.Error()
		}
		if got := typeAmong(tc.p, m); got != tc.want || said != tc.said || diag.Hint(err) != tc.hint {
			t.Errorf("%+v: type %s, error %q (%s)", tc.p, got, said, diag.Hint(err))
		}
	}
}
