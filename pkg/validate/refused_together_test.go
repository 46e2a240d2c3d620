package validate

import (
	"strings"
	"testing"
)

// infraKind is the version of the kinds of AWS and OpenStack in these tests.
const infraKind = "\n---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: "

// togetherIn are the findings about objects that a provider refuses, of a repo with these objects in one file.
func togetherIn(t *testing.T, manifest string) []string {
	t.Helper()
	files := rawRepo()
	files["infra/cluster.yaml"] = manifest + "\n"
	var got []string
	for _, f := range ofRule(validate(t, files, knownKinds(t)).Findings, RuleRefused) {
		if f.File == "infra/cluster.yaml" {
			got = append(got, f.Summary)
		}
	}
	return got
}

func wantTogether(t *testing.T, manifest string, want ...string) {
	t.Helper()
	got := togetherIn(t, manifest)
	if len(got) != len(want) {
		t.Fatalf("findings %q, want %q", got, want)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("%q, want %q", got[i], want[i])
		}
	}
}

// planeOf are a Cluster and its control plane. It has machines of a template m of the kind, or no machines where the kind is "".
func planeOf(infra, machines string) string {
	plane := "apiVersion: controlplane.cluster.x-k8s.io/v1alpha1\nkind: KamajiControlPlane\nmetadata: {name: shop, namespace: shop}\nspec: {}"
	kind := "KamajiControlPlane"
	if machines != "" {
		kind = "KubeadmControlPlane"
		plane = "apiVersion: controlplane.cluster.x-k8s.io/v1beta2\nkind: KubeadmControlPlane\nmetadata: {name: shop, namespace: shop}\n" +
			"spec: {version: v1.36.0, replicas: 1, kubeadmConfigSpec: {format: cloud-config}, machineTemplate: {spec: {infrastructureRef: " +
			"{apiGroup: infrastructure.cluster.x-k8s.io, kind: " + machines + ", name: m}}}}"
	}
	return "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: shop, namespace: shop}\n" +
		"spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: " + infra + ", name: shop}, " +
		"controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: " + kind + ", name: shop}}\n---\n" + plane
}

// An OpenStackCluster needs an address for an API server on its own machines. A control plane elsewhere writes its address into it, and of
// a control plane that the repo does not have nobody knows.
func TestRefusedEndpointOfOpenStack(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ spec, want string }{
		{"disableAPIServerFloatingIP: true", "the API server has no address"},
		{"{disableAPIServerFloatingIP: true, apiServerLoadBalancer: {enabled: false}}", "the API server has no address"},
		{"apiServer: {enableFloatingIP: false}", "the API server has no address"},
		{"{disableAPIServerFloatingIP: true, apiServerLoadBalancer: {enabled: true}}", ""},
		{"{disableAPIServerFloatingIP: true, apiServerLoadBalancer: {}}", ""},
		{"{disableAPIServerFloatingIP: true, apiServerFixedIP: 10.6.0.9}", ""},
		{"{disableAPIServerFloatingIP: true, controlPlaneEndpoint: {host: a.example.com, port: 6443}}", ""},
		{"apiServer: {enableFloatingIP: false, managedLoadBalancer: {enabled: true}}", ""},
		{"{}", ""},
	} {
		inner := strings.TrimSuffix(strings.TrimPrefix(tc.spec, "{"), "}")
		if !strings.HasPrefix(tc.spec, "{") {
			inner = tc.spec
		}
		cluster := infraKind + "OpenStackCluster\nmetadata: {name: shop, namespace: shop}\nspec: {managedSubnets: [{cidr: 10.6.0.0/24}]"
		if inner != "" {
			cluster += ", " + inner
		}
		cluster += "}"
		own := planeOf("OpenStackCluster", "OpenStackMachineTemplate")
		machines := infraKind + "OpenStackMachineTemplate\nmetadata: {name: m, namespace: shop}\nspec: {template: {spec: {flavor: a}}}"
		t.Run(tc.spec, func(t *testing.T) {
			t.Parallel()
			if tc.want == "" {
				wantTogether(t, own+cluster+machines)
				return
			}
			wantTogether(t, own+cluster+machines, "OpenStackCluster shop: spec: "+tc.want)
			wantTogether(t, planeOf("OpenStackCluster", "")+cluster)
			wantTogether(t, strings.TrimPrefix(cluster, "\n---\n"))
		})
	}
}

// AWS's provider gives an instance the tags of its cluster and those of its own.
func TestRefusedTagsOfAWSTogether(t *testing.T) {
	t.Parallel()
	tags := func(format string, n int) string { return "additionalTags: {" + numbered(format+": a", n) + "}" }
	cluster := func(n int) string {
		return infraKind + "AWSCluster\nmetadata: {name: shop, namespace: shop}\nspec: {region: eu-central-1, " + tags("t%d", n) + "}"
	}
	template := func(spec string) string {
		return infraKind + "AWSMachineTemplate\nmetadata: {name: m, namespace: shop}\nspec: {template: {spec: {instanceType: m7i.large, " +
			spec + "}}}"
	}
	workers := "\n---\napiVersion: cluster.x-k8s.io/v1beta2\nkind: MachineDeployment\nmetadata: {name: w, namespace: shop}\n" +
		"spec: {clusterName: shop, selector: {}, template: {spec: {clusterName: shop, bootstrap: {dataSecretName: a}, infrastructureRef: " +
		"{apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSMachineTemplate, name: w}}}}"
	pool := func(kind string) string {
		return "\n---\napiVersion: cluster.x-k8s.io/v1beta2\nkind: MachinePool\nmetadata: {name: w, namespace: shop}\n" +
			"spec: {clusterName: shop, template: {spec: {clusterName: shop, bootstrap: {dataSecretName: a}, infrastructureRef: " +
			"{apiGroup: infrastructure.cluster.x-k8s.io, kind: " + kind + ", name: w}}}}" +
			infraKind + kind + "\nmetadata: {name: w, namespace: shop}\nspec: {"
	}
	own := planeOf("AWSCluster", "AWSMachineTemplate")
	eks := "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: shop, namespace: shop}\n" +
		"spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSManagedCluster, name: shop}, " +
		"controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: AWSManagedControlPlane, name: shop}}" +
		"\n---\napiVersion: controlplane.cluster.x-k8s.io/v1beta2\nkind: AWSManagedControlPlane\nmetadata: {name: shop, namespace: shop}\n" +
		"spec: {region: eu-central-1, " + tags("t%d", 40) + "}"
	const host = "tenancy: host, hostAffinity: host, dynamicHostAllocation: {tags: {"
	named := func(text string) string { return strings.Replace(text, "{name: m,", "{name: w,", 1) }
	for name, tc := range map[string]struct {
		manifest string
		want     []string
	}{
		"as many as AWS takes": {own + cluster(30) + template(tags("m%d", 15)), nil},
		"one more": {own + cluster(30) + template(tags("m%d", 16)), []string{
			"AWSMachineTemplate m: spec.template.spec.additionalTags: there are 16 tags, and AWS takes 50 with the 30 of AWSCluster shop " +
				"and the 5 that the provider adds",
		}},
		"the same keys":           {own + cluster(40) + template(tags("t%d", 40)), nil},
		"too many of the cluster": {own + cluster(46) + template(tags("m%d", 1)), []string{"AWSCluster shop: spec.additionalTags"}},
		"too many of the machine": {own + cluster(1) + template(tags("m%d", 46)), []string{"with the 5 that the provider adds"}},
		"workers": {
			own + cluster(30) + template("ami: {}") + workers + named(template(tags("m%d", 16))),
			[]string{"AWSMachineTemplate w"},
		},
		"a pool": {
			own + cluster(30) + template("ami: {}") + pool("AWSMachinePool") + tags("m%d", 15) + "}",
			[]string{"AWSMachinePool w"},
		},
		"a pool, as many": {own + cluster(30) + template("ami: {}") + pool("AWSMachinePool") + tags("m%d", 14) + "}", nil},
		"a pool without tags": {
			own + cluster(45) + template("ami: {}") + pool("AWSMachinePool") + "minSize: 1}",
			[]string{"AWSMachinePool w: spec: its instances have more tags than the 50 that AWS takes: the 45 of AWSCluster shop and the 6"},
		},
		"a node group": {
			eks + pool("AWSManagedMachinePool") + tags("m%d", 10) + "}",
			[]string{"with the 40 of AWSManagedControlPlane shop and the 1"},
		},
		"a node group, as many": {eks + pool("AWSManagedMachinePool") + tags("m%d", 9) + "}", nil},
		"a host of its own": {
			own + cluster(30) + template(host+numbered("h%d: a", 21)+"}}"),
			[]string{"dynamicHostAllocation.tags: there are 21 tags, and AWS takes 50 with the 30 of"},
		},
		"a host of its own, as many":  {own + cluster(30) + template(host+numbered("h%d: a", 20)+"}}"), nil},
		"of a cluster that is absent": {own + template(tags("m%d", 45)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantTogether(t, tc.manifest, tc.want...)
		})
	}
}

// The providers of Azure and OpenStack do the same.
func TestRefusedTagsTogether(t *testing.T) {
	t.Parallel()
	azure := func(cluster, machine int) string {
		return planeOf("AzureCluster", "AzureMachineTemplate") +
			infraKind + "AzureCluster\nmetadata: {name: shop, namespace: shop}\nspec: {identityRef: " +
			"{kind: AzureClusterIdentity, name: shop, namespace: shop}, additionalTags: {" + numbered("t%d: a", cluster) + "}}" +
			infraKind + "AzureMachineTemplate\nmetadata: {name: m, namespace: shop}\nspec: {template: {spec: {additionalTags: {" +
			numbered("m%d: a", machine) + "}}}}"
	}
	openstack := func(cluster, machine int, common string) string {
		return planeOf("OpenStackCluster", "OpenStackMachineTemplate") +
			infraKind + "OpenStackCluster\nmetadata: {name: shop, namespace: shop}\nspec: {managedSubnets: [{cidr: 10.6.0.0/24}], tags: [" +
			numbered("t%d", cluster) + "]}" +
			infraKind + "OpenStackMachineTemplate\nmetadata: {name: m, namespace: shop}\nspec: {template: {spec: {flavor: a, tags: [" +
			numbered(common+"%d", machine) + "]}}}"
	}
	for name, tc := range map[string]struct{ manifest, want string }{
		"Azure":                    {azure(30, 16), ""},
		"Azure, one more":          {azure(30, 17), "Azure takes 50 with the 30 of AzureCluster shop and the 4 that the provider adds"},
		"Azure, of the cluster":    {azure(48, 1), "AzureCluster shop: spec.additionalTags: there are 48 tags, and Azure takes 50 with the 3"},
		"OpenStack":                {openstack(30, 20, "m"), ""},
		"OpenStack, one more":      {openstack(30, 21, "m"), "tags: there are 21 tags, and Nova takes 50 with the 30 of OpenStackCluster shop"},
		"OpenStack, the same tags": {openstack(50, 50, "t"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.want == "" {
				wantTogether(t, tc.manifest)
				return
			}
			wantTogether(t, tc.manifest, tc.want)
		})
	}
}
