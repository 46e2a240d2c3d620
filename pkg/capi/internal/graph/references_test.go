package graph

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

func custom(group, kind string) *heldKind {
	return &heldKind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, custom: true}
}

// A Secret goes without what has made it, and without what that names: a new target has no operator for it, and its Flux brings both.
func TestGraphLeavesWhoMadeASecret(t *testing.T) {
	for _, maker := range []*heldKind{
		custom("external-secrets.io", "ExternalSecret"), custom("bitnami.com", "SealedSecret"), custom("cert-manager.io", "Certificate"),
		custom("platform.example.org", "XCluster"),
	} {
		for _, o := range []GraphOptions{{}, {Clusters: []kube.Key{{Namespace: "team", Name: "alpha"}}}} {
			h, stores := twoClusters(), custom(maker.Group, "SecretStore")
			h.add(maker, "team", "maker", map[string]any{"spec": map[string]any{
				"secretStoreRef": map[string]any{"kind": "SecretStore", "name": "vault"},
			}})
			h.add(stores, "team", "vault", map[string]any{"spec": map[string]any{"tokenSecretRef": map[string]any{"name": "vault-token"}}})
			h.add(secrets, "team", "vault-token", nil)
			for i := range h[secrets] {
				if h[secrets][i].GetName() == "alpha-ssh" {
					h[secrets][i].SetOwnerReferences([]metav1.OwnerReference{{UID: types.UID(maker.Kind + "/maker"), Kind: maker.Kind, Name: "maker"}})
				}
			}
			g := h.graph(o)
			got := names(g)
			for _, item := range got {
				if strings.HasPrefix(item, maker.Kind+" ") || strings.HasPrefix(item, "SecretStore ") || item == "Secret team/vault-token" {
					t.Errorf("%s: %s goes", maker.Kind, item)
				}
			}
			if !slices.Contains(got, "Secret team/alpha-ssh") {
				t.Errorf("%s: the Secret does not go: %q", maker.Kind, got)
			}
			if !slices.ContainsFunc(g.Missing, func(m string) bool { return strings.HasPrefix(m, "Secret team/alpha-ssh is owned by ") }) {
				t.Errorf("%s: nobody says that the Secret goes without its owner: %q", maker.Kind, g.Missing)
			}
		}
	}
}

// What made a Cluster goes with it: at the source, it would make the Cluster again.
func TestGraphTakesWhoMadeACluster(t *testing.T) {
	h, maker := twoClusters(), custom("platform.example.org", "XCluster")
	h.add(maker, "team", "maker", nil)
	for i := range h[clusters] {
		h[clusters][i].SetOwnerReferences([]metav1.OwnerReference{{UID: "XCluster/maker", Kind: "XCluster", Name: "maker"}})
	}
	if got := names(h.graph(GraphOptions{})); !slices.Contains(got, "XCluster team/maker") {
		t.Errorf("it does not go: %q", got)
	}
}

// A snapshot of an earlier release has such objects, too. It can be restored where their kinds are not served; not so without a provider.
func TestGraphOfStoredObjectsLeavesWhoMadeASecret(t *testing.T) {
	stored := func(kind *heldKind, shared bool) Portable {
		h := holding{}
		h.add(kind, "team", "alpha", nil)
		object, err := json.Marshal(h[kind][0].Object)
		if err != nil {
			t.Fatal(err)
		}
		return Portable{Object: object, Shared: shared}
	}
	m := &Members{kinds: &kindCache{kinds: []*heldKind{clusters, secrets}}}
	g, err := m.GraphOf(t.Context(), []Portable{stored(clusters, false), stored(custom("external-secrets.io", "ExternalSecret"), true)})
	if err != nil || len(g.Items) != 1 || len(g.Missing) != 1 || !strings.Contains(g.Missing[0], "ExternalSecret team/alpha is left out") {
		t.Errorf("%+v, %v", g, err)
	}
	for name, lacking := range map[string]Portable{
		"a provider's":                        stored(awsOnes, true),
		"a provider's without a label, owned": stored(custom("kamaji.clastix.io", "TenantControlPlane"), false),
		"Azure's":                             stored(azureOnes, true), "Metal3's": stored(custom(metal3Addresses, "IPPool"), true),
	} {
		if g, err := m.GraphOf(t.Context(), []Portable{lacking}); err == nil {
			t.Errorf("%s: %+v", name, g)
		}
	}
}
