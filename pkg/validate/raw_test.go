package validate

import (
	"cmp"
	"maps"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/validate/schema"
)

// quiet are the rules that report something intended in these manifests: an older version of Cluster API, and kinds without their CRDs.
var quiet = []string{RuleDeprecated, RuleUnknownKind}

func TestManifestsOfProvidersAreValid(t *testing.T) {
	for _, f := range validate(t, rawRepo(), knownKinds(t)).Findings {
		if f.Rule != RuleDeprecated && f.Rule != RuleUnknownKind {
			t.Errorf("%s: %s [%s] (%s)", f.Severity, f, f.Rule, f.Hint)
		}
	}
}

// mistakes are common mistakes in the manifests of a cluster of any provider. NAME, CLUSTER, MACHINE, CORE and API are filled in. crd says
// that the mistake is found only with the CRDs of the provider.
var mistakes = []struct {
	plant
	crd bool
}{
	{plant: plant{
		name: "infrastructure that is not there", rule: RuleClusterRef, old: "name: NAME-infra\n",
		becomes: "name: NAME-infar\n", at: "NAME-infar",
	}},
	{plant: plant{
		name: "infrastructure of another kind", rule: RuleClusterRef, old: "    kind: CLUSTER\n",
		becomes: "    kind: OtherCluster\n", at: "name: NAME-infra\n",
	}},
	{plant: plant{
		name: "infrastructure in another namespace", rule: RuleClusterRef, old: "metadata: {name: NAME-infra, namespace: NAME,",
		becomes: "metadata: {name: NAME-infra, namespace: default,", at: "name: NAME-infra\n", also: []string{RuleMissingID},
	}},
	{plant: plant{
		name: "infrastructure that is taken out", rule: RuleClusterRef, old: "kind: CLUSTER\nmetadata: {name: NAME-infra",
		becomes: "kind: CLUSTER\nmetadata: {name: NAME-other", at: "name: NAME-infra\n",
	}},
	{plant: plant{
		name: "control plane that is not there", rule: RuleClusterRef, old: "name: NAME-plane\n",
		becomes: "name: NAME-plan\n", at: "NAME-plan\n",
	}},
	{plant: plant{
		name: "control plane that is none", rule: RuleClusterRef, old: "    kind: KubeadmControlPlane\n",
		becomes: "    kind: KubeadmConfigTemplate\n", at: "    kind: KubeadmConfigTemplate",
	}},
	{plant: plant{
		name: "machine template of a control plane", rule: RuleClusterRef, old: "name: NAME-cpm\n",
		becomes: "name: NAME-cp\n", at: "NAME-cp\n",
	}},
	{plant: plant{
		name: "machine template of workers", rule: RuleClusterRef, old: "name: NAME-wm\n",
		becomes: "name: NAME-w\n", at: "NAME-w\n",
	}},
	{plant: plant{
		name: "machine template of another provider", rule: RuleClusterRef, old: "        kind: MACHINE\n        name: NAME-wm\n",
		becomes: "        kind: PacketMachineTemplate\n        name: NAME-wm\n", at: "name: NAME-wm\n",
	}},
	{plant: plant{
		name: "a machine in the place of a template", rule: RuleClusterRef, old: "        kind: MACHINE\n        name: NAME-wm\n",
		becomes: "        kind: AWSMachine\n        name: NAME-wm\n", at: "kind: AWSMachine\n",
	}},
	{plant: plant{
		name: "bootstrap configuration that is not there", rule: RuleClusterRef, old: "name: NAME-cfg\n",
		becomes: "name: NAME-config\n", at: "NAME-config\n",
	}},
	{plant: plant{
		name: "bootstrap configuration that is no template", rule: RuleClusterRef, old: "          kind: KubeadmConfigTemplate\n",
		becomes: "          kind: KubeadmConfig\n", at: "          kind: KubeadmConfig\n",
	}},
	{plant: plant{
		name: "workers of no cluster", rule: RuleClusterRef, old: "  clusterName: NAME\n  replicas",
		becomes: "  clusterName: NAMEE\n  replicas", at: "  clusterName: NAMEE\n", also: []string{RuleClusterRef},
	}},
	{plant: plant{
		name: "machines of another cluster than their workers", rule: RuleClusterRef, old: "      clusterName: NAME\n",
		becomes: "      clusterName: other\n", at: "clusterName: other",
	}},
	{plant: plant{
		name: "health check of no cluster", rule: RuleClusterRef, old: "clusterName:  NAME\n", becomes: "clusterName: nothing\n",
		at: "clusterName: nothing",
	}},
	{plant: plant{
		name: "resource set without its resource", rule: RuleMissingConfig, old: "    name: NAME-cni\n",
		becomes: "    name: NAME-calico\n", at: "NAME-calico",
	}},
	{plant: plant{
		name: "resource set with a secret that is not there", rule: RuleMissingSecret, old: "  - kind: ConfigMap\n",
		becomes: "  - kind: Secret\n", at: "    name: NAME-cni\n",
	}},
	{plant: plant{
		name: "workers newer than the control plane", rule: RuleSkew, old: "version: v1.32.5",
		becomes: "version: v1.34.0", at: "v1.34.0",
	}},
	{plant: plant{name: "workers too old", rule: RuleSkew, old: "version: v1.32.5", becomes: "version: v1.29.0", at: "v1.29.0"}},
	{plant: plant{
		name: "control plane older than its workers", rule: RuleSkew, old: "version: v1.33.2", becomes: "version: v1.31.0",
		at: "version: v1.32.5",
	}},
	{plant: plant{
		name: "version with two numbers", rule: RuleValue, old: "version: v1.33.2", becomes: "version: v1.33",
		at: "version: v1.33\n",
	}},
	{plant: plant{name: "version that is none", rule: RuleValue, old: "version: v1.32.5", becomes: "version: latest", at: "version: latest"}},
	{plant: plant{
		name: "flag of kubelet that is gone", rule: RuleSkew, old: "kubeletExtraArgs:\n", becomes: "kubeletExtraArgs:\nGONE",
		at: "container-runtime",
	}},
	{plant: plant{
		name: "pods and Services in one network", rule: RuleNetworks, old: "    pods: {cidrBlocks: [192.168.0.0/16]}\n",
		becomes: "    pods: {cidrBlocks: [192.168.0.0/16]}\n    services: {cidrBlocks: [192.168.128.0/17]}\n", at: "    pods: {cidrBlocks",
	}},
	{plant: plant{
		name: "network of pods that is none", rule: RuleValue, old: "    pods: {cidrBlocks: [192.168.0.0/16]}\n",
		becomes: "    pods: {cidrBlocks: [192.168.0/16]}\n", at: "    pods: {cidrBlocks",
	}},
	{plant: plant{name: "unknown field of a Cluster", rule: RuleUnknownField, old: "    pods: {", becomes: "    podz: {", at: "podz"}},
	{plant: plant{
		name: "wrong type in a control plane", rule: RuleType, old: "  replicas: 3\n", becomes: "  replicas: three\n",
		at: "replicas: three",
	}},
	{plant: plant{
		name: "unknown field of workers", rule: RuleUnknownField, old: "  replicas: 2\n",
		becomes: "  replica: 2\n", at: "replica: 2",
	}},
	{plant: plant{
		name: "required field of workers", rule: RuleRequired, old: "  clusterName: NAME\n  replicas", becomes: "  replicas",
		at: "spec:\n  replicas: 2",
	}},
	{plant: plant{
		name: "unknown field of infrastructure", rule: RuleUnknownField,
		old:     "metadata: {name: NAME-infra, namespace: NAME, KEPT}\nspec:\n",
		becomes: "metadata: {name: NAME-infra, namespace: NAME, KEPT}\nspec:\n  regionn: a\n", at: "regionn",
	}, crd: true},
	{plant: plant{
		name: "unknown field of a machine template", rule: RuleUnknownField,
		old: "metadata: {name: NAME-wm, namespace: NAME}\nspec:\n  template:\n    spec:\n", becomes: "metadata: {name: NAME-wm, namespace: " +
			"NAME}\nspec:\n  template:\n    spec:\n      instanceTyp: a\n", at: "instanceTyp: a",
	}, crd: true},
	{plant: plant{
		name: "version of infrastructure that is not served", rule: RuleAPIVersion, old: "cluster.x-k8s.io/API\nkind: CLUSTER\n",
		becomes: "cluster.x-k8s.io/v1alpha2\nkind: CLUSTER\n", at: "v1alpha2",
	}, crd: true},
	{plant: plant{
		name: "wrong type in infrastructure", rule: RuleType,
		old:     "metadata: {name: NAME-wm, namespace: NAME}\nspec:\n  template:\n",
		becomes: "metadata: {name: NAME-wm, namespace: NAME}\nspec:\n  template:\n    metadata: [a]\n", at: "metadata: [a]",
	}, crd: true},
	{plant: plant{
		name: "version of Cluster API that is not served", rule: RuleAPIVersion,
		old:     "apiVersion: cluster.x-k8s.io/CORE\nkind: Cluster\n",
		becomes: "apiVersion: cluster.x-k8s.io/v1alpha2\nkind: Cluster\n", at: "v1alpha2",
	}},
	{plant: plant{
		name: "cluster without protection", rule: RulePrune,
		old:     "  namespace: NAME\n  annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}",
		becomes: "  namespace: NAME\n  annotations: {a: b}", at: "annotations: {a: b}",
	}},
	{plant: plant{
		name: "namespace without protection", rule: RulePrune,
		old: "{name: NAME, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}}", becomes: "{name: NAME}", at: "{name: NAME}",
	}},
	{plant: plant{
		name: "control plane without protection", rule: RulePrune, old: "name: NAME-plane, namespace: NAME, KEPT", becomes: "name: NAME-plane, " +
			"namespace: NAME", at: "name: NAME-plane, namespace",
	}},
	{plant: plant{
		name: "infrastructure without protection", rule: RulePrune, old: "name: NAME-infra, namespace: NAME, KEPT",
		becomes: "name: NAME-infra, namespace: NAME", at: "name: NAME-infra, namespace",
	}},
	{plant: plant{
		name: "workers without protection", rule: RulePrune, old: "name: NAME-md, namespace: NAME, KEPT", becomes: "name: NAME-md, " +
			"namespace: NAME", at: "name: NAME-md, namespace",
	}},
	{plant: plant{
		name: "label that is none", rule: RuleMetadata, old: "metadata: {name: NAME-plane, namespace: NAME,",
		becomes: "metadata: {name: NAME-plane, namespace: NAME, labels: {a: not one},", at: "not one",
	}},
	{plant: plant{
		name: "the same twice", rule: RuleDuplicate,
		becomes: "---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: NAME-cni, namespace: NAME}\n", at: "kind: ConfigMap\napiVersion: v1",
	}},
	{plant: plant{
		name: "a key twice", rule: RuleDuplicateField, old: "  replicas: 3\n",
		becomes: "  replicas: 3\n  replicas: 5\n", at: "replicas: 5",
	}},
	{plant: plant{
		name: "secret in clear", rule: RulePlainSecret,
		becomes: "---\napiVersion: v1\nkind: Secret\nmetadata: {name: clear, namespace: NAME}\nstringData:\n  a: hunter2\n", at: "hunter2",
	}},
	{plant: plant{
		name: "two clusters of one infrastructure", rule: RuleClusterRef, at: "name: NAME-infra}",
		becomes: "---\napiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: NAME2, namespace: NAME, annotations: " +
			"{kustomize.toolkit.fluxcd.io/prune: disabled}}\nspec:\n  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: " +
			"CLUSTER, name: NAME-infra}\n",
	}},
	{plant: plant{name: "no YAML", rule: RuleSyntax, old: "  replicas: 3\n", becomes: "  replicas: [3\n", at: "replicas: [3"}},
}

// rawPlants are the mistakes in the manifests of every provider, and the mistakes that only one provider's manifests can have.
func rawPlants(crds bool) []plant {
	var out []plant
	for _, c := range clouds {
		gone := "          - {name: container-runtime, value: remote}\n"
		if c.core == "v1beta1" {
			gone = "            container-runtime: remote\n"
		}
		fill := strings.NewReplacer("NAME", c.name, "CORE", c.core, "API", c.api, "CLUSTER", c.cluster, "MACHINE", c.machine, "GONE", gone,
			"KEPT", kept)
		for _, m := range mistakes {
			if m.crd && !crds && c.name != "dev" {
				continue
			}
			p := m.plant
			p.name, p.file = c.name+": "+p.name, c.file()
			p.old, p.becomes, p.at = fill.Replace(p.old), fill.Replace(p.becomes), fill.Replace(p.at)
			out = append(out, p)
		}
	}
	for _, p := range ownPlants() {
		p.file = cmp.Or(p.file, "infra/classy.yaml")
		out = append(out, p)
	}
	for i := range out {
		out[i].also = append(out[i].also, quiet...)
	}
	return out
}

// Mistakes in manifests of five providers are found, each at its line, and nothing else is.
func TestSeededManifests(t *testing.T) {
	seedManifests(t, knownKinds(t), false)
}

// seedManifests plants every mistake by itself and prints what became of it.
func seedManifests(t *testing.T, known *schema.Set, crds bool) {
	t.Helper()
	valid := rawRepo()
	all := rawPlants(crds)
	outcomes := make([]outcome, len(all))
	var group errgroup.Group
	group.SetLimit(4)
	for i, p := range all {
		group.Go(func() error {
			outcomes[i] = p.plantIn(t, maps.Clone(valid), known)
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	printOutcomes(t, outcomes)
}
