package fleetrepo

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
)

func TestAWSIdentities(t *testing.T) {
	const role = "arn:aws:iam::111122223333:role/fleet"
	dir := t.TempDir()
	for name, content := range map[string]string{
		"mgmt/identities/aws-prod.yaml": "# c\nkind: AWSClusterRoleIdentity\nmetadata: {name: prod}\nspec: {roleARN: &r " + role +
			", externalID: e, sessionName: s, sourceIdentityRef: {kind: AWSClusterControllerIdentity, name: default}}\n---\n" +
			"kind: AWSClusterStaticIdentity\nmetadata: {name: keys}\nspec: {secretRef: x}\n---\n" +
			"kind: AWSClusterControllerIdentity\nmetadata: {name: default}\n---\n" +
			"kind: AzureClusterIdentity\nmetadata: {name: azure}\n",
		"clusters/prod/filled.yaml":       "kind: AWSClusterRoleIdentity\nmetadata: {name: filled}\nspec: {roleARN: \"arn:aws:iam::${ACCOUNT}:role/x\"}\n",
		"clusters/prod/shop/cluster.yaml": "kind: HelmRelease\nspec: {chartRef: {name: prod-aws-eks}, values: {identity: {name: prod}}}\n",
		"clusters/prod/lost/cluster.yaml": "kind: HelmRelease\nspec: {chartRef: {name: prod-aws-eks}, values: {identity: {name: lost}}}\n",
		"clusters/prod/own/cluster.yaml":  "kind: HelmRelease\nspec: {chartRef: {name: prod-aws-eks}, values: {identity: {name: \"\"}}}\n",
		"clusters/prod/azure/cluster.yaml": "kind: HelmRelease\nspec: {chartRef: {name: aws-prod-azure-aks}, values: {identity: {name: " +
			"azure}}}\n",
		"clusters/prod/raw/cluster.yaml": "kind: AWSCluster\nspec: {identityRef: {kind: AWSClusterStaticIdentity, name: by-hand}}\n---\n" +
			"kind: AWSManagedControlPlane\nspec: {identityRef: {kind: AWSClusterControllerIdentity, name: default}}\n---\n" +
			"kind: AWSClusterTemplate\nspec: {template: {spec: {identityRef: {kind: AWSClusterRoleIdentity, name: class}}}}\n",
		"clusters/prod/broken.yaml": "kind: AWSClusterRoleIdentity\nspec: [\n",
	} {
		file := filepath.Join(dir, "providers/aws/v1", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fleet := &v1alpha1.Fleet{Spec: v1alpha1.FleetSpec{ManagementClusters: []v1alpha1.ManagementCluster{
		{Name: "a", Cloud: "aws", Generation: "v1"}, {Name: "b", Cloud: "gcp", Generation: "v1"},
	}}}
	got, err := New(dir, fleet).AWSIdentities("a")
	at := func(name string) string { return "providers/aws/v1/" + name }
	want := []AWSIdentity{
		{AWSIdentityRef: AWSIdentityRef{AWSRoleIdentity, "class"}, File: at("clusters/prod/raw/cluster.yaml")},
		{AWSIdentityRef: AWSIdentityRef{AWSRoleIdentity, "filled"}, File: at("clusters/prod/filled.yaml"), Declared: true},
		{AWSIdentityRef: AWSIdentityRef{AWSRoleIdentity, "lost"}, File: at("clusters/prod/lost/cluster.yaml")},
		{
			AWSIdentityRef: AWSIdentityRef{AWSRoleIdentity, "prod"}, RoleARN: role, ExternalID: "e", SessionName: "s",
			Source: AWSIdentityRef{AWSOwnIdentity, "default"}, File: at("mgmt/identities/aws-prod.yaml"), Declared: true,
		},
		{AWSIdentityRef: AWSIdentityRef{AWSStaticIdentity, "by-hand"}, File: at("clusters/prod/raw/cluster.yaml")},
		{AWSIdentityRef: AWSIdentityRef{AWSStaticIdentity, "keys"}, File: at("mgmt/identities/aws-prod.yaml"), Declared: true},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if got, err := New(dir, fleet).AWSIdentities("b"); err != nil || len(got) > 0 {
		t.Errorf("another management cluster has %+v, %v", got, err)
	}
}
