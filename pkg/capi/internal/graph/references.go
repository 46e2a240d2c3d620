package graph

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// credentialFrom is the annotation with the name of the Secret with the credentials of an Azure Service Operator object.
const credentialFrom = "serviceoperator.azure.com/credential-from"

// takeReferences takes the objects that the taken objects name in their fields (Secrets, ConfigMaps, identities, pools of addresses,
// templates), and the owners of those objects. It repeats this until it finds no new object.
func (g *graph) takeReferences() {
	for seen := map[*node]bool{}; ; {
		var fresh []*node
		for _, n := range g.nodes {
			if n.taken && !seen[n] {
				seen[n] = true
				fresh = append(fresh, n)
			}
		}
		if len(fresh) == 0 {
			return
		}
		for _, n := range fresh {
			g.takeNamed(n)
		}
	}
}

func (g *graph) takeNamed(n *node) {
	for _, o := range n.GetOwnerReferences() {
		if owner := g.byUID[o.UID]; owner != nil && !g.belongsToOthers(owner) && (n.kind.custom || owner.isOfManagement()) {
			g.use(owner)
		}
	}
	if class := g.classOf(n); class != nil {
		g.use(class)
	}
	if !n.kind.custom {
		return
	}
	if name := n.GetAnnotations()[credentialFrom]; name != "" {
		g.useSecret(n, "", name)
	}
	g.walk(n, "", n.Object["spec"])
}

// azureGroups end the API groups of Azure Service Operator, which installs some of its CRDs by itself, without clusterctl's labels:
// https://azure.github.io/azure-service-operator.
const azureGroups = ".azure.com"

// isOfManagement tells whether a target has what the owner of a Secret needs, because both have the same providers. What made a Secret,
// such as an ExternalSecret or a SealedSecret, is no part of Cluster API: Flux or somebody else makes it at the target, too, or nobody. Its
// Secret goes without it. What made a Cluster goes with it: it would make the Cluster again at the source.
func (n *node) isOfManagement() bool {
	return !n.kind.custom || n.kind.provider || n.kind.root || isOfCloud(n.kind.Group) ||
		hasLabel(n, clusterctlv1.ClusterctlMoveLabel) || hasLabel(n, clusterctlv1.ClusterctlMoveHierarchyLabel)
}

// use takes an object that a taken object names. It takes no Clusters and no objects of Flux.
func (g *graph) use(n *node) {
	if n.kind.GroupKind() == clusterGroupKind || OfFlux(n.kind.Group) {
		return
	}
	g.take(n, false)
}

// walk looks for references in a part of n's spec that is the value of field.
func (g *graph) walk(n *node, field string, value any) {
	switch value := value.(type) {
	case map[string]any:
		g.reference(n, field, value)
		for name, inner := range value {
			g.walk(n, name, inner)
		}
	case []any:
		for _, inner := range value {
			g.walk(n, field, inner)
		}
	case string:
		if namesSecret(field) {
			g.useSecret(n, "", value)
		}
	}
}

func namesSecret(field string) bool { return strings.Contains(strings.ToLower(field), "secret") }

// reference takes the object to which a value leads, if there is one. The value is a reference {kind, name}, or {name} in a field whose
// name contains "secret" or "configmap".
func (g *graph) reference(n *node, field string, fields map[string]any) {
	text := func(name string) string {
		s, _ := fields[name].(string)
		return s
	}
	name, kind, namespace := text("name"), text("kind"), text("namespace")
	switch {
	case name == "":
	case kind == secretKind.Kind || kind == "" && namesSecret(field):
		g.useSecret(n, namespace, name)
	case kind == configMapKind.Kind || kind == "" && strings.Contains(strings.ToLower(field), "configmap"):
		g.useNamed(n, schema.GroupKind{Kind: configMapKind.Kind}, cmp.Or(namespace, n.GetNamespace()), name)
	case kind != "":
		g.useOfKind(n, kind, text("apiGroup"), text("apiVersion"), namespace, name)
	}
}

// useSecret takes a Secret by name: from the given namespace, or else from n's own namespace, or else from the namespace of n's controller.
func (g *graph) useSecret(n *node, namespace, name string) {
	for _, in := range []string{cmp.Or(namespace, n.GetNamespace()), n.kind.home} {
		if in != "" && g.useNamed(n, schema.GroupKind{Kind: secretKind.Kind}, in, name) {
			return
		}
	}
}

// kept tells whether the Secrets and ConfigMaps of a namespace are the management cluster's own: Flux's decryption key and token, or the
// journal of hand-overs. Otherwise anybody with the right to write one object of a provider could name them in it and have them sent to the
// target.
func kept(namespace string) bool {
	return slices.Contains([]string{"flux-system", "fleetctl-system", "kube-system", "kube-public", "kube-node-lease"}, namespace)
}

func (g *graph) useNamed(n *node, gk schema.GroupKind, namespace, name string) bool {
	if kept(namespace) && namespace != n.GetNamespace() {
		return false
	}
	found := g.byRef[refKey{gk, kube.Key{Namespace: namespace, Name: name}}]
	if found != nil {
		g.use(found)
	}
	return found != nil
}

// useOfKind takes a custom resource by kind and name, in n's namespace or cluster-scoped.
func (g *graph) useOfKind(n *node, kind, group, version, namespace, name string) {
	if parsed, err := schema.ParseGroupVersion(version); err == nil && group == "" {
		group = parsed.Group
	}
	for _, found := range g.byKind[kind] {
		in := found.GetNamespace()
		if found.kind.custom && found.GetName() == name && (group == "" || group == found.kind.Group) &&
			(in == "" || in == cmp.Or(namespace, n.GetNamespace())) {
			g.use(found)
		}
	}
}
