package validate

import (
	"strings"

	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// withoutNamespace are the cluster-scoped kinds that references lead to.
var withoutNamespace = map[string]bool{
	"AWSClusterControllerIdentity": true, "AWSClusterRoleIdentity": true, "AWSClusterStaticIdentity": true, "VSphereClusterIdentity": true,
	"OpenStackClusterIdentity": true, "VSphereFailureDomain": true, "GlobalInClusterIPPool": true, "GlobalInfobloxIPPool": true,
	"ClusterRole":  true,
	"StorageClass": true, "IngressClass": true, "PriorityClass": true,
}

// identityPointers are the fields in which clusters refer to their credentials: an identity of the provider, or a Secret.
var identityPointers = []pointer{
	{path: "spec.identityRef"},
	{path: "spec.template.spec.identityRef"},
	{path: "spec.sourceIdentityRef"},
	{path: "spec.credentialsRef", kind: "Secret"},
	{path: "spec.template.spec.credentialsRef", kind: "Secret"}, // Google Cloud, Proxmox
	{path: "spec.credentialRef", kind: "Secret"},                // Linode
	{path: "spec.credentialsSecretRef", kind: "Secret"},         // ROSA
	{path: "spec.hetznerSecretRef", kind: "Secret"},
	{path: "spec.template.spec.hetznerSecretRef", kind: "Secret"},
	{path: "spec.infraClusterSecretRef", kind: "Secret"},
	{path: "spec.template.spec.infraClusterSecretRef", kind: "Secret"}, // KubeVirt
	{path: "spec.prismCentral.credentialRef"},
	{path: "spec.template.spec.prismCentral.credentialRef"},     // Nutanix
	{path: "spec.failureDomains[].acsEndpoint", kind: "Secret"}, // CloudStack
	{path: "spec.failureDomain", kind: "VSphereFailureDomain"},
}

// identitySecrets are the fields in which identities refer to their Secret, and the keys that their provider reads from it. Without a
// namespace in the field, the Secret is in the namespace of the provider. A provider takes a key that is not there for an empty password.
var identitySecrets = map[string]struct {
	field, namespace string
	keys             []string
}{
	"AWSClusterStaticIdentity": {"secretRef", "capa-system", []string{"AccessKeyID", "SecretAccessKey"}},
	"AzureClusterIdentity":     {"clientSecret", "", []string{"clientSecret"}},
	"VSphereClusterIdentity":   {"secretName", "capv-system", []string{"username", "password"}},
	"OpenStackClusterIdentity": {"secretRef", "capo-system", []string{"clouds.yaml"}},
}

// identity adds the references of a cluster to its credentials. Such Secrets are often made by hand, on the management cluster.
func (c *referrer) identity() {
	if secret, ok := identitySecrets[c.Kind]; ok {
		ref := reference{rule: RuleMissingID, kind: "Secret", namespace: secret.namespace, field: "spec." + secret.field, doubtful: true}
		if ref.name = c.fields.Text("spec", secret.field); ref.name == "" {
			at := c.fields.In("spec", secret.field)
			ref.name, ref.field = at.Text("name"), ref.field+".name"
			if namespace := at.Text("namespace"); namespace != "" {
				ref.namespace = namespace
			}
		}
		c.withKeys(ref, secret.keys)
	}
	for _, p := range identityPointers {
		if p.kind == "VSphereFailureDomain" && c.Kind != "VSphereDeploymentZone" {
			continue
		}
		eachAt(c.fields, p.path, func(at string, value any) { c.credentials(p, at, value) })
	}
}

func (c *referrer) credentials(p pointer, at string, value any) {
	ref := reference{rule: RuleMissingID, kind: p.kind, field: at}
	if text, ok := value.(string); ok {
		ref.name = text
	} else {
		inner, _ := value.(map[string]any)
		said := mapping.Fields(inner)
		ref.name, ref.namespace, ref.field = said.Text("name"), said.Text("namespace"), at+".name"
		if ref.kind == "" {
			ref.kind = said.Text("kind")
		}
		if ref.kind == "" && strings.HasPrefix(c.Kind, "OpenStack") {
			if ref.kind = "Secret"; said.Text("type") == "ClusterIdentity" {
				ref.kind = "OpenStackClusterIdentity"
			}
		}
	}
	if ref.kind == "" {
		return
	}
	ref.doubtful = ref.kind == "Secret"
	c.withKeys(ref, c.credentialKeys(ref.kind))
}

// credentialKeys are the keys that the provider of a cluster reads from the Secret which the cluster names itself.
func (c *referrer) credentialKeys(kind string) []string {
	switch {
	case kind != "Secret":
	case strings.HasPrefix(c.Kind, "GCP"):
		return []string{"credentials"}
	case strings.HasPrefix(c.Kind, "OpenStack"):
		return []string{"clouds.yaml"}
	case strings.HasPrefix(c.Kind, "VSphere"):
		return []string{"username", "password"}
	}
	return nil
}

// withKeys adds a reference, once for each key of the Secret that has to be there.
func (c *referrer) withKeys(ref reference, keys []string) {
	if len(keys) == 0 {
		c.put(ref)
	}
	for _, key := range keys {
		before := len(c.refs)
		c.put(ref)
		c.key(before, key, ref.field)
	}
}
