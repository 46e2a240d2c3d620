//go:build integration

package capi

import (
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

const someIdentityCRDs = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: awsclusterroleidentities.infrastructure.cluster.x-k8s.io}
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: AWSClusterRoleIdentity, listKind: AWSClusterRoleIdentityList, plural: awsclusterroleidentities, singular: awsclusterroleidentity}
  scope: Cluster
  versions: [{name: v1beta2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: azureclusteridentities.infrastructure.cluster.x-k8s.io}
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: AzureClusterIdentity, listKind: AzureClusterIdentityList, plural: azureclusteridentities, singular: azureclusteridentity}
  scope: Namespaced
  versions: [{name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

const someIdentities = `apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSClusterRoleIdentity
metadata: {name: staging}
spec: {roleARN: "arn:aws:iam::1:role/x", allowedNamespaces: {list: [b, a], selector: {matchLabels: {team: one}}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSClusterRoleIdentity
metadata: {name: everybody}
spec: {roleARN: "arn:aws:iam::1:role/y", allowedNamespaces: {}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AzureClusterIdentity
metadata: {name: nobody, namespace: default}
spec: {type: WorkloadIdentity, clientID: "1-2-3"}
`

func TestIdentities(t *testing.T) {
	b := newValuesBed(t)
	if all, err := b.manage.Identities(t.Context()); err != nil || len(all) != 0 {
		t.Fatalf("a cluster without their kinds has %v, %v", all, err)
	}
	if _, err := kubetest.ApplyYAML(t.Context(), b.client, []byte(someIdentityCRDs), kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := kubetest.ApplyYAML(t.Context(), b.client, []byte(someIdentities), kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	all, err := b.manage.Identities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range all {
		if i.Since.IsZero() {
			t.Errorf("%s is there since nobody knows when", i.Name)
		}
		got = append(got, strings.Join([]string{i.Provider, i.Kind, i.Namespace + "/" + i.Name, i.Source, i.Namespaces}, "|"))
	}
	slices.Sort(got)
	want := []string{
		"aws|AWSClusterRoleIdentity|/everybody|role arn:aws:iam::1:role/y|all",
		"aws|AWSClusterRoleIdentity|/staging|role arn:aws:iam::1:role/x|a, b, labelled team=one",
		"azure|AzureClusterIdentity|default/nobody|WorkloadIdentity 1-2-3|none",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
