package validate

import (
	"strings"
	"testing"
)

// Only what the repo tells of namespaces is judged, and each provider's way to say whom an identity admits is understood.
func TestIdentitiesThatAdmit(t *testing.T) {
	crds := knownKinds(t)
	const file = platform + "identity.yaml"
	cluster := func(kind, namespace string) string {
		return "---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: " + kind + "Cluster\nmetadata: {name: a, namespace: " +
			namespace + "}\nspec:\n" +
			"  identityRef: {type: ClusterIdentity, kind: " + kind + "ClusterIdentity, name: of}\n"
	}
	identity := func(kind, says string) string {
		metadata := "{name: of}"
		if kind == "Azure" {
			metadata = "{name: of, namespace: one}"
		}
		return "apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: " + kind + "ClusterIdentity\nmetadata: " + metadata + "\nspec: {" +
			says + "}\n"
	}
	for _, test := range []struct {
		name, content, want string
	}{
		{"the labels that it has", identity("VSphere", "allowedNamespaces: {selector: {matchLabels: {fleetctl.dev/environment: staging}}}") +
			cluster("VSphere", "one"), ""},
		{"its name", identity("VSphere", "allowedNamespaces: {selector: {matchLabels: {kubernetes.io/metadata.name: one}}}") +
			cluster("VSphere", "one"), ""},
		{"all", identity("Azure", "allowedNamespaces: {}") + cluster("Azure", "one"), ""},
		{"the list has it", identity("Azure", "allowedNamespaces: {list: [one], selector: {matchLabels: {a: b}}}") + cluster("Azure", "one"), ""},
		{"a namespace whose labels nobody knows", identity("VSphere", "allowedNamespaces: {selector: {matchLabels: {a: b}}}") +
			cluster("VSphere", "default"), ""},
		{"a label that the cluster fills in", identity("VSphere", "allowedNamespaces: {selector: {matchLabels: {a: \"${b}\"}}}") +
			cluster("VSphere", "one"), ""},
		{"OpenStack admits all", identity("OpenStack", "secretRef: {name: a, namespace: b}") + cluster("OpenStack", "one"), ""},
		{
			"OpenStack's labels", identity("OpenStack", "namespaceSelector: {matchLabels: {a: b}}") + cluster("OpenStack", "one"),
			"namespaceSelector takes those with the labels a=b",
		},
		{"nobody", identity("VSphere", "secretName: of") + cluster("VSphere", "default"), "no allowedNamespaces"},
		{"vSphere knows no list", identity("VSphere", "allowedNamespaces: {list: [one], selector: {matchLabels: {a: b}}}") +
			cluster("VSphere", "one"), "labels a=b"},
	} {
		files := fleet(t)
		files[file] = test.content
		got := ""
		for _, f := range validate(t, files, crds).Findings {
			if f.Rule == RuleIdentityNS {
				got += f.Summary
			}
		}
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
