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
---
apiVersion: apiextensions.k8s.io/v1
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
metadata: {name: awsclustercontrolleridentities.infrastructure.cluster.x-k8s.io}
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: AWSClusterControllerIdentity, listKind: AWSClusterControllerIdentityList, plural: awsclustercontrolleridentities, singular: awsclustercontrolleridentity}
  scope: Cluster
  versions: [{name: v1beta2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: vsphereclusteridentities.infrastructure.cluster.x-k8s.io}
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: VSphereClusterIdentity, listKind: VSphereClusterIdentityList, plural: vsphereclusteridentities, singular: vsphereclusteridentity}
  scope: Cluster
  versions: [{name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: openstackclusteridentities.infrastructure.cluster.x-k8s.io}
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: OpenStackClusterIdentity, listKind: OpenStackClusterIdentityList, plural: openstackclusteridentities, singular: openstackclusteridentity}
  scope: Cluster
  versions: [{name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
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
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AzureClusterIdentity
metadata: {name: key, namespace: default}
spec: {type: ServicePrincipal, clientID: "1-2-3", clientSecret: {name: principal, namespace: keys}, allowedNamespaces: {list: [a]}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSClusterStaticIdentity
metadata: {name: key}
spec: {secretRef: aws-key, allowedNamespaces: {list: [a]}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSClusterControllerIdentity
metadata: {name: default}
spec: {allowedNamespaces: {}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: VSphereClusterIdentity
metadata: {name: vcenter}
spec: {secretName: vcenter-user, allowedNamespaces: {selector: {matchLabels: {team: two}}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: OpenStackClusterIdentity
metadata: {name: stack}
spec: {secretRef: {name: clouds, namespace: capo-system}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: OpenStackClusterIdentity
metadata: {name: stack-one}
spec: {secretRef: {name: clouds, namespace: capo-system}, namespaceSelector: {matchLabels: {team: one}}}
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
		"aws|AWSClusterControllerIdentity|/default|the provider's own pods|all",
		"aws|AWSClusterRoleIdentity|/everybody|role arn:aws:iam::1:role/y|all",
		"aws|AWSClusterRoleIdentity|/staging|role arn:aws:iam::1:role/x|a, b, labelled team=one",
		"aws|AWSClusterStaticIdentity|/key|Secret aws-key|a",
		"azure|AzureClusterIdentity|default/key|ServicePrincipal, Secret keys/principal|a",
		"azure|AzureClusterIdentity|default/nobody|WorkloadIdentity 1-2-3|none",
		"openstack|OpenStackClusterIdentity|/stack-one|Secret capo-system/clouds|labelled team=one",
		"openstack|OpenStackClusterIdentity|/stack|Secret capo-system/clouds|all",
		"vsphere|VSphereClusterIdentity|/vcenter|Secret vcenter-user|labelled team=two",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
