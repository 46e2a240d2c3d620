//go:build integration

package reclaim

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/orphans"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// keysBed is the management cluster of a fleet, whose cluster lost is in the account of an AWSClusterStaticIdentity.
type keysBed struct {
	*testing.T
	client     *kube.Client
	kubeconfig string
	simulated  *simulatedAWS
}

const (
	innerAccount = "777788889999"
	keysBehind   = "{kind: AWSClusterStaticIdentity, name: keys}"
)

// keysDeclared is the fleet repo's identity with a key, beside a role in the provider's own account. The cluster's identity names another
// Secret.
var keysDeclared = "kind: AWSClusterStaticIdentity\nmetadata: {name: keys}\nspec: {secretRef: other}\n" +
	roleIdentity("prod", ownAccount, "fleet", controllers)

func newKeysBed(t *testing.T) *keysBed {
	client, raw := kubetest.Start(t)
	config, err := clientcmd.Load(raw)
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts["admin"] = config.Contexts[config.CurrentContext]
	guest := config.Contexts["admin"].DeepCopy()
	guest.AuthInfo = "guest"
	config.Contexts["guest"] = guest
	config.AuthInfos["guest"] = config.AuthInfos[config.Contexts["admin"].AuthInfo].DeepCopy()
	config.AuthInfos["guest"].Impersonate = "guest"
	b := &keysBed{t, client, filepath.Join(t.TempDir(), "kubeconfig"), newSimulatedAWS(t)}
	if err := clientcmd.WriteToFile(*config, b.kubeconfig); err != nil {
		t.Fatal(err)
	}
	kubetest.ClusterAPI(t, client, "clusters", "machines")
	b.apply(keysCRDs)
	b.apply(keysObjects)
	claim := &ownership.Claim{Fleet: fleetID, Name: "acme", Cluster: "mgmt"}
	if err := claim.Create(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *keysBed) apply(manifest string) {
	b.Helper()
	if _, err := kubetest.ApplyYAML(b.Context(), b.client, []byte(manifest), kube.ApplyOptions{}); err != nil {
		b.Fatal(err)
	}
}

// key puts a key into the Secret called keys. Only the one in the provider's namespace is that of the identity.
func (b *keysBed) key(namespace, id string) {
	b.Helper()
	b.apply(fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: keys, namespace: %s}\nstringData: {AccessKeyID: %q, "+
		"SecretAccessKey: canary-key, SessionToken: canary-token}\n", namespace, id))
}

// look lists the orphans as the user of a context. Nothing that it returns has a part of a key.
func (b *keysBed) look(context, identities string) *orphans.Report {
	b.Helper()
	r := b.simulated.lookAt(b.T, &state.Given{Name: "mgmt", Kubeconfig: b.kubeconfig, Context: context}, identities, withKey())
	if all, err := json.Marshal(r); err != nil || strings.Contains(string(all)+fmt.Sprintf("%+v", r), "canary") {
		b.Errorf("%v: %s", err, all)
	}
	return r
}

// notAsked expects that exactly the account of the key is not asked, for a reason.
func (b *keysBed) notAsked(r *orphans.Report, why, hint string) {
	b.Helper()
	if resources, _ := listed(r); r.Complete || len(r.AccountsNotAsked) != 1 || !slices.Equal(resources, []string{"vpc-" + ownAccount}) ||
		!strings.Contains(r.AccountsNotAsked[0].Why, why) || !strings.Contains(r.AccountsNotAsked[0].Hint, hint) ||
		!strings.Contains(r.AccountsNotAsked[0].Hint, "by hand") {
		b.Errorf("%v, %+v; want %q and %q", resources, r.AccountsNotAsked, why, hint)
	}
}

// The account of a key in a Secret of the management cluster is asked with this key, and so is the account of a role that begins with it.
// Only the Secret that the identity in the cluster names counts, in the namespace of the provider.
func TestOrphansInTheAccountOfAKey(t *testing.T) {
	b := newKeysBed(t)
	b.notAsked(b.look("admin", keysDeclared), `secrets "keys" not found`, "by hand")
	b.key("default", "AKIA"+shutAccount)
	b.notAsked(b.look("admin", keysDeclared), "get Secret capa-elsewhere/keys: ", "by hand")
	b.key("capa-elsewhere", "AKIA"+otherAccount)
	r := b.look("admin", keysDeclared+roleIdentity("inner", innerAccount, "inner", keysBehind))
	resources, _ := listed(r)
	slices.Sort(resources)
	if want := []string{"vpc-" + otherAccount, "vpc-" + innerAccount, "vpc-" + ownAccount}; !r.Complete || !slices.Equal(resources, want) {
		t.Errorf("complete %v, %v: %+v", r.Complete, resources, r.AccountsNotAsked)
	}
	// A key of the provider's own account is another credential for it, and the account is asked once.
	b.key("capa-elsewhere", "AKIAX")
	r = b.look("admin", keysDeclared)
	if resources, accounts := listed(r); !r.Complete || len(resources) != 1 || !slices.Equal(accounts, []string{ownAccount}) {
		t.Errorf("%v, %v", resources, accounts)
	}
}

// A key that cannot be read, or that AWS refuses, leaves its account not asked.
func TestOrphansInTheAccountOfAKeyThatOpensNothing(t *testing.T) {
	b := newKeysBed(t)
	b.key("capa-elsewhere", "AKIAWRONG")
	b.notAsked(b.look("admin", keysDeclared), "SignatureDoesNotMatch: The request signature does not match", "put a new one into the Secret")
	b.key("capa-elsewhere", "AKIA"+otherAccount)
	b.notAsked(b.look("guest", keysDeclared), `secrets "keys" is forbidden`, "let the kubeconfig of this command read")
	b.key("capa-elsewhere", "")
	b.notAsked(b.look("admin", keysDeclared), `it has no key "AccessKeyID"`, "by hand")
	b.notAsked(b.look("admin", strings.ReplaceAll(keysDeclared, "keys", "unknown")), `"unknown" not found`, "by hand")
	claim, err := ownership.ReadClaim(t.Context(), b.client)
	if err != nil {
		t.Fatal(err)
	}
	claim.Cluster = "other"
	if err := claim.Update(t.Context(), b.client); err != nil {
		t.Fatal(err)
	}
	b.notAsked(b.look("admin", keysDeclared), "is another one", "fleetctl connect")
}

var keysObjects = `apiVersion: v1
kind: Namespace
metadata: {name: capa-elsewhere}
---
apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Provider
metadata: {namespace: capa-elsewhere, name: infrastructure-aws}
providerName: aws
type: InfrastructureProvider
version: v2.13.0
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSClusterStaticIdentity
metadata: {name: keys}
spec: {secretRef: keys}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: guest}
rules:
- {apiGroups: [""], resources: [namespaces, configmaps], verbs: [get, list]}
- {apiGroups: [cluster.x-k8s.io, clusterctl.cluster.x-k8s.io, infrastructure.cluster.x-k8s.io], resources: ["*"], verbs: [get, list]}
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [get, list]}
- {apiGroups: [""], resources: [secrets], resourceNames: [` + handover.JournalKey.Name + `], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: guest}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: guest}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: guest}]
`

const keysCRDs = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: awsclusterstaticidentities.infrastructure.cluster.x-k8s.io}
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: AWSClusterStaticIdentity, listKind: AWSClusterStaticIdentityList, plural: awsclusterstaticidentities, singular: awsclusterstaticidentity}
  scope: Cluster
  versions: [{name: v1beta2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: providers.clusterctl.cluster.x-k8s.io}
spec:
  group: clusterctl.cluster.x-k8s.io
  names: {kind: Provider, listKind: ProviderList, plural: providers, singular: provider}
  scope: Namespaced
  versions: [{name: v1alpha3, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`
