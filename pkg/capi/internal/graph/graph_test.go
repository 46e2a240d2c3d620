package graph

import (
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// holding has the objects of a management cluster in memory, by kind.
type holding map[*heldKind][]unstructured.Unstructured

var (
	clusters   = &heldKind{GroupVersionKind: clusterKind, custom: true, root: true, status: true}
	classes    = &heldKind{GroupVersionKind: clusterKind.GroupVersion().WithKind("ClusterClass"), custom: true, root: true}
	awsOnes    = &heldKind{GroupVersionKind: infra("AWSCluster"), custom: true, status: true, home: "capa-system"}
	identities = &heldKind{GroupVersionKind: infra("AWSClusterStaticIdentity"), custom: true, home: "capa-system"}
	templates  = &heldKind{GroupVersionKind: infra("AWSMachineTemplate"), custom: true}
	sets       = &heldKind{GroupVersionKind: addonsv1.GroupVersion.WithKind("ClusterResourceSet"), custom: true, root: true}
	bindings   = &heldKind{GroupVersionKind: addonsv1.GroupVersion.WithKind("ClusterResourceSetBinding"), custom: true}
	claims     = &heldKind{GroupVersionKind: schema.GroupVersionKind{
		Group: "ipam.cluster.x-k8s.io", Version: "v1beta2",
		Kind: "IPAddressClaim",
	}, custom: true}
	pools = &heldKind{GroupVersionKind: schema.GroupVersionKind{
		Group: "ipam.cluster.x-k8s.io", Version: "v1alpha2",
		Kind: "InClusterIPPool",
	}, custom: true}
	azureOnes = &heldKind{
		GroupVersionKind: schema.GroupVersionKind{Group: "resources.azure.com", Version: "v1", Kind: "ResourceGroup"},
		custom:           true,
	}
	releases = &heldKind{
		GroupVersionKind: schema.GroupVersionKind{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"},
		custom:           true, status: true,
	}
	secrets = &heldKind{GroupVersionKind: secretKind}
)

func infra(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: kind}
}

// add adds an object. Its UID is its kind and name.
func (h holding) add(kind *heldKind, namespace, name string, content map[string]any, owners ...string) {
	obj := unstructured.Unstructured{Object: content}
	if content == nil {
		obj.Object = map[string]any{}
	}
	obj.SetGroupVersionKind(kind.GroupVersionKind)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetUID(types.UID(kind.Kind + "/" + name))
	var refs []metav1.OwnerReference
	for _, o := range owners {
		refs = append(refs, metav1.OwnerReference{UID: types.UID(o), Name: o})
	}
	obj.SetOwnerReferences(refs)
	h[kind] = append(h[kind], obj)
}

func (h holding) graph(o GraphOptions) *Graph {
	var found []listed
	for kind, objects := range h {
		found = append(found, listed{kind, objects})
	}
	g := newGraph(found, len(o.Clusters) == 0)
	g.link()
	g.takeRoots(o.Clusters)
	if o.WithFlux {
		g.takeFlux()
	}
	g.takeReferences()
	return g.result(o)
}

func names(g *Graph) []string {
	found := map[string]bool{}
	for _, item := range g.Items {
		found[item.GetKind()+" "+item.GetNamespace()+"/"+item.GetName()] = true
	}
	return slices.Sorted(maps.Keys(found))
}

func topology(class string) map[string]any {
	return map[string]any{"spec": map[string]any{"topology": map[string]any{"classRef": map[string]any{"name": class}}}}
}

// twoClusters returns the Clusters alpha and beta of one class, and objects that belong to alpha in every possible way.
func twoClusters() holding {
	h := holding{}
	h.add(classes, "team", "quick", nil)
	h.add(clusters, "team", "alpha", topology("quick"))
	h.add(clusters, "team", "beta", topology("quick"))
	h.add(awsOnes, "team", "alpha", map[string]any{"spec": map[string]any{
		"identityRef": map[string]any{"kind": "AWSClusterStaticIdentity", "name": "prod"},
		"sshKey":      map[string]any{"secretRef": map[string]any{"name": "alpha-ssh"}},
	}}, "Cluster/alpha")
	h.add(identities, "", "prod", map[string]any{"spec": map[string]any{"secretRef": "prod-credentials"}})
	h.add(secrets, "capa-system", "prod-credentials", nil)
	h.add(secrets, "team", "alpha-ssh", nil)
	h.add(secrets, "team", "alpha-kubeconfig", nil)
	h.add(secrets, "team", "beta-kubeconfig", nil)
	h.add(secrets, "team", "owned", nil, "AWSCluster/alpha")
	h.add(secrets, "team", "somebody-elses", nil)
	h.add(claims, "team", "alpha-0", map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"cluster.x-k8s.io/cluster-name": "alpha"}},
		"spec": map[string]any{"poolRef": map[string]any{
			"apiGroup": "ipam.cluster.x-k8s.io",
			"kind":     "InClusterIPPool", "name": "addresses",
		}},
	})
	h.add(pools, "team", "addresses", nil)
	h.add(azureOnes, "team", "group", map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{credentialFrom: "azure-credentials"}},
	}, "Cluster/alpha")
	h.add(secrets, "team", "azure-credentials", nil)
	return h
}

func alphas() []string {
	return []string{
		"AWSCluster team/alpha", "AWSClusterStaticIdentity /prod", "Cluster team/alpha", "ClusterClass team/quick", "IPAddressClaim team/alpha-0",
		"InClusterIPPool team/addresses", "ResourceGroup team/group", "Secret capa-system/prod-credentials", "Secret team/alpha-kubeconfig",
		"Secret team/alpha-ssh", "Secret team/azure-credentials", "Secret team/owned",
	}
}

func TestGraphOfOneCluster(t *testing.T) {
	g := twoClusters().graph(GraphOptions{Clusters: []kube.Key{{Namespace: "team", Name: "alpha"}}})
	if got := names(g); !slices.Equal(got, alphas()) {
		t.Errorf("got %q\nwant %q", got, alphas())
	}
	for _, item := range g.Items {
		named := slices.Contains([]string{"quick", "prod", "prod-credentials", "alpha-ssh", "addresses", "azure-credentials"}, item.GetName())
		if item.Stays != named {
			t.Errorf("%s stays at the source: %t", item.Ref(), item.Stays)
		}
	}
}

// Cluster API makes each Cluster of a namespace an owner of the templates and Secrets that it uses. What a Cluster that stays at the source
// owns too stays there, in its namespace and in the objects that it owns. The target gets a copy.
func TestGraphOfOneClusterKeepsWhatAnotherOwns(t *testing.T) {
	h := twoClusters()
	h.add(templates, "team", "shared", nil, "Cluster/alpha", "Cluster/beta")
	h.add(templates, "team", "own", nil, "Cluster/alpha")
	h.add(awsOnes, "team", "beta", nil, "Cluster/beta")
	h.add(secrets, "team", "shared", nil, "AWSCluster/alpha", "AWSCluster/beta")
	stays := map[string]bool{}
	for _, item := range h.graph(GraphOptions{Clusters: []kube.Key{{Namespace: "team", Name: "alpha"}}}).Items {
		stays[item.GetKind()+" "+item.GetName()] = item.Stays
	}
	for name, want := range map[string]bool{
		"AWSMachineTemplate shared": true, "Secret shared": true, "AWSMachineTemplate own": false, "Secret owned": false,
		"AWSCluster alpha": false,
	} {
		if got, taken := stays[name]; !taken || got != want {
			t.Errorf("%s: taken %t, stays %t, want %t", name, taken, got, want)
		}
	}
	if _, taken := stays["AWSCluster beta"]; taken {
		t.Error("AWSCluster beta goes with alpha")
	}
	for _, item := range h.graph(GraphOptions{}).Items {
		if item.Stays {
			t.Errorf("%s stays at a source that hands all over", item.Ref())
		}
	}
}

// Clusters of both sides own a resource group, and the group owns the networks of each. Those of the Cluster that goes go.
func TestGraphOfOneClusterTakesWhatOnlyItUses(t *testing.T) {
	h := twoClusters()
	h.add(awsOnes, "team", "beta", nil, "Cluster/beta")
	h.add(azureOnes, "team", "both", nil, "AWSCluster/alpha", "AWSCluster/beta")
	h.add(secrets, "team", "alphas-network", nil, "ResourceGroup/both", "AWSCluster/alpha")
	h.add(secrets, "team", "betas-network", nil, "ResourceGroup/both", "AWSCluster/beta")
	h.add(secrets, "team", "network", nil, "ResourceGroup/both")
	stays := map[string]bool{}
	for _, item := range h.graph(GraphOptions{Clusters: []kube.Key{{Namespace: "team", Name: "alpha"}}}).Items {
		stays[item.GetName()] = item.Stays
	}
	for name, want := range map[string]bool{"both": true, "alphas-network": false, "betas-network": true, "network": true} {
		if got, taken := stays[name]; !taken || got != want {
			t.Errorf("%s: taken %t, stays %t, want %t", name, taken, got, want)
		}
	}
}

// Metal3's addresses of all Clusters go with their pool, so that the target gives none of them out again.
func TestGraphOfOneClusterTakesAddressesOfMetal3(t *testing.T) {
	metal3 := func(kind string) *heldKind {
		return &heldKind{GroupVersionKind: schema.GroupVersionKind{Group: metal3Addresses, Version: "v1alpha1", Kind: kind}, custom: true}
	}
	pools, claims, addresses := metal3("IPPool"), metal3("IPClaim"), metal3("IPAddress")
	h := twoClusters()
	h.add(pools, "team", "rack", nil)
	for _, name := range []string{"alpha", "beta"} {
		pool := map[string]any{"pool": map[string]any{"name": "rack"}}
		h.add(claims, "team", name, map[string]any{"spec": pool}, "Cluster/"+name)
		h.add(addresses, "team", name, map[string]any{"spec": pool}, "IPPool/rack", "IPClaim/"+name)
	}
	g := h.graph(GraphOptions{Clusters: []kube.Key{{Namespace: "team", Name: "alpha"}}})
	for _, want := range []string{"IPPool team/rack", "IPAddress team/alpha", "IPAddress team/beta"} {
		if !slices.Contains(names(g), want) {
			t.Errorf("%s does not go: %q", want, names(g))
		}
	}
	if !slices.ContainsFunc(g.Missing, func(s string) bool { return strings.HasPrefix(s, "clusters that stay use IPPool team/rack too") }) {
		t.Errorf("missing: %q", g.Missing)
	}
}

// Two management clusters cannot give out the addresses of one pool.
func TestGraphOfOneClusterNamesDividedPools(t *testing.T) {
	h := twoClusters()
	alpha := GraphOptions{Clusters: []kube.Key{{Namespace: "team", Name: "alpha"}}}
	if missing := h.graph(alpha).Missing; len(missing) > 0 {
		t.Errorf("nobody else uses the pool: %q", missing)
	}
	for _, name := range []string{"beta-0", "beta-1"} {
		h.add(claims, "team", name, map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"cluster.x-k8s.io/cluster-name": "beta"}},
			"spec":     map[string]any{"poolRef": map[string]any{"kind": "InClusterIPPool", "name": "addresses"}},
		})
	}
	missing := h.graph(alpha).Missing
	if len(missing) != 1 || !strings.HasPrefix(missing[0], "clusters that stay use InClusterIPPool team/addresses too") {
		t.Errorf("missing: %q", missing)
	}
	if missing := h.graph(GraphOptions{}).Missing; len(missing) > 0 {
		t.Errorf("all go together: %q", missing)
	}
}

// A ClusterResourceSet owns a binding for each of its Clusters. The binding of a Cluster that stays does not go with the set.
func TestGraphOfOneClusterLeavesTheBindingsOfOthers(t *testing.T) {
	h := twoClusters()
	h.add(sets, "team", "cni", nil)
	for _, name := range []string{"alpha", "beta"} {
		h.add(bindings, "team", name, map[string]any{"spec": map[string]any{"clusterName": name}}, "ClusterResourceSet/cni")
	}
	want := append(alphas(), "ClusterResourceSet team/cni", "ClusterResourceSetBinding team/alpha")
	slices.Sort(want)
	if got := names(h.graph(GraphOptions{Clusters: []kube.Key{{Namespace: "team", Name: "alpha"}}})); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// A tenant names the management cluster's own Secrets in an object, in every possible way. They must not be handed over.
func TestGraphKeepsTheManagementClustersSecrets(t *testing.T) {
	own := map[string]string{"flux-system": "sops-age", "fleetctl-system": "fleetctl-handover", "kube-system": "bootstrap-token"}
	for _, o := range []GraphOptions{{}, {Clusters: []kube.Key{{Namespace: "team", Name: "alpha"}}}} {
		h := twoClusters()
		want := names(h.graph(o))
		spec := map[string]any{}
		for namespace, name := range own {
			h.add(secrets, namespace, name, nil)
			ref := map[string]any{"name": name, "namespace": namespace}
			spec["secret-"+namespace], spec["auth-"+namespace] = ref, map[string]any{"kind": "Secret", "name": name, "namespace": namespace}
			spec["list-"+namespace] = []any{map[string]any{"secretRef": ref}}
		}
		h.add(awsOnes, "team", "thief", map[string]any{"spec": spec}, "Cluster/alpha")
		want = append(want, "AWSCluster team/thief")
		slices.Sort(want)
		if got := names(h.graph(o)); !slices.Equal(got, want) {
			t.Errorf("%v: got %q\nwant %q", o.Clusters, got, want)
		}
	}
}

func TestGraphOfAll(t *testing.T) {
	g := twoClusters().graph(GraphOptions{})
	want := append(alphas(), "Cluster team/beta", "Secret team/beta-kubeconfig")
	slices.Sort(want)
	if got := names(g); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	levels := map[string]int{}
	for _, item := range g.Items {
		levels[item.GetKind()+"/"+item.GetName()] = item.Level
		if item.Stays {
			t.Errorf("%s stays at a source that hands all over", item.Ref())
		}
	}
	if levels["Cluster/alpha"] != 0 || levels["AWSCluster/alpha"] != 1 || levels["Secret/owned"] != 2 {
		t.Errorf("levels %v", levels)
	}
}

// The search ends for a cycle of owners, which an API server accepts.
func TestGraphOfOwnersThatOwnEachOther(t *testing.T) {
	h := holding{}
	h.add(clusters, "team", "alpha", nil, "AWSCluster/alpha")
	h.add(awsOnes, "team", "alpha", nil, "Cluster/alpha")
	g := h.graph(GraphOptions{})
	if len(g.Items) != 2 {
		t.Errorf("got %q", names(g))
	}
	var objects []*unstructured.Unstructured
	for _, item := range g.Items {
		objects = append(objects, item.Unstructured)
	}
	count := 0
	for _, level := range ownedFirst(objects) {
		count += len(level)
	}
	if count != 2 {
		t.Errorf("%d of 2 objects would be removed", count)
	}
}

// Helm's records of a release are handed over only together with the release's objects. Otherwise the target's Helm would never make these
// objects.
func TestGraphOfReleases(t *testing.T) {
	h := twoClusters()
	h.add(releases, "team", "alpha", nil)
	h.add(releases, "addons", "ingress", nil)
	for _, namespace := range []string{"team", "addons"} {
		name := map[string]string{"team": "alpha", "addons": "ingress"}[namespace]
		h.add(secrets, namespace, "sh.helm.release.v1."+name+".v1", map[string]any{
			"type": historyType, "metadata": map[string]any{"labels": map[string]any{"name": name}},
		})
	}
	g := h.graph(GraphOptions{WithFlux: true})
	got := names(g)
	if !slices.Contains(got, "Secret team/sh.helm.release.v1.alpha.v1") ||
		slices.Contains(got, "Secret addons/sh.helm.release.v1.ingress.v1") {
		t.Errorf("got %q", got)
	}
	for _, item := range g.Items {
		if item.GetKind() == "HelmRelease" && item.Anew != (item.GetName() == "ingress") {
			t.Errorf("%s is installed anew: %t", item.Ref(), item.Anew)
		}
	}
}

func TestStatusIsNotAheadOfItsObject(t *testing.T) {
	for _, c := range []struct {
		generation, seen int64
		paused           bool
		want             any
	}{
		{7, 7, false, int64(1)}, // everything was observed
		{7, 6, false, nil},      // the last change was not observed, so the copy counts as not observed
		{8, 7, true, int64(1)},  // the last change is the hand-over's pause
		{3, 9, false, int64(1)}, // the source itself is ahead
	} {
		obj := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
			"observedGeneration": c.seen, "conditions": []any{map[string]any{"type": "Ready", "observedGeneration": c.seen}},
		}}}
		obj.SetGroupVersionKind(clusterKind)
		obj.SetGeneration(c.generation)
		if c.paused {
			obj.SetAnnotations(map[string]string{PausedMark: ""})
		}
		status, _ := statusOf(obj, 1).(map[string]any)
		conditions, _ := status["conditions"].([]any)
		condition, _ := conditions[0].(map[string]any)
		if status["observedGeneration"] != c.want || condition["observedGeneration"] != c.want {
			t.Errorf("generation %d, seen %d: got %v and %v, want %v", c.generation, c.seen, status["observedGeneration"],
				condition["observedGeneration"], c.want)
		}
	}
}

// Only the providers of the objects that go act on them, as far as the CRDs say whose they are.
func TestActedOn(t *testing.T) {
	of := func(label, kind string) *heldKind {
		return &heldKind{GroupVersionKind: infra(kind), custom: true, provider: true, label: label}
	}
	h := holding{}
	h.add(clusters, "west", "west", nil)
	h.add(of("infrastructure-aws", "AWSCluster"), "west", "west", nil, "Cluster/west")
	h.add(clusters, "plant", "plant", nil)
	h.add(of("infrastructure-vsphere", "VSphereCluster"), "plant", "plant", nil, "Cluster/plant")
	west := GraphOptions{Clusters: []kube.Key{{Namespace: "west", Name: "west"}}}
	acts := h.graph(west).ActedOn()
	if !acts("infrastructure-aws") || acts("infrastructure-vsphere") {
		t.Errorf("on west: aws %t, vsphere %t", acts("infrastructure-aws"), acts("infrastructure-vsphere"))
	}
	if acts := h.graph(GraphOptions{}).ActedOn(); !acts("infrastructure-aws") || !acts("infrastructure-vsphere") {
		t.Error("on all of them not both")
	}
	h.add(of("", "SomethingElse"), "west", "other", nil, "Cluster/west")
	if acts := h.graph(west).ActedOn(); !acts("infrastructure-vsphere") {
		t.Error("an object whose provider is unknown may be that of any")
	}
}
