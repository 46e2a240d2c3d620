package scaffold

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// The providers whose clusters get their credentials from an identity object.
const (
	IdentityAWS     = "aws"
	IdentityAzure   = "azure"
	IdentityVSphere = "vsphere"
	// identityOpenStack is one that fleetctl lists and removes, and does not write.
	identityOpenStack = "openstack"
)

// maxIdentityName bounds the characters of an identity's name, and of the names of its Secret and namespaces.
const maxIdentityName = 63

// IdentityProviders returns the names of all providers with identities.
func IdentityProviders() []string { return []string{IdentityAWS, IdentityAzure, IdentityVSphere} }

// identityKinds maps the kinds of identities that name the clusters which may use them to their provider.
var identityKinds = map[string]string{
	"AWSClusterControllerIdentity": IdentityAWS, "AWSClusterRoleIdentity": IdentityAWS, "AWSClusterStaticIdentity": IdentityAWS,
	"AzureClusterIdentity": IdentityAzure, "OpenStackClusterIdentity": identityOpenStack, "VSphereClusterIdentity": IdentityVSphere,
}

// IdentityProvider returns the provider of a kind of identity. It returns "" for a kind that is no identity, or that names no clusters.
func IdentityProvider(kind string) string { return identityKinds[kind] }

// IdentityOptions are the options of IdentityFile.
type IdentityOptions struct {
	Name, Provider string
	// Management is the folder of the management cluster's own configuration.
	Management string
	// Environments and Namespaces whose clusters may use the identity. At least one of them must not be empty.
	Environments, Namespaces []string

	// RoleARN is the role on AWS, and ExternalID the external ID that its trust policy requires. TrustedARN may assume the role; by default it
	// is the role that clusterawsadm makes for the controllers in the same account.
	RoleARN, ExternalID, TrustedARN string
	// TenantID and ClientID are those of Azure's managed identity or application. ObjectNamespace is the namespace of the identity object.
	TenantID, ClientID, ObjectNamespace string
	// Type is one of AzureIdentityTypes. "" means AzureServicePrincipal with a Secret, and AzureWorkload without one.
	Type string
	// SecretName is the Secret with vSphere's user and password, or with AWS's access key, in the provider's namespace; or the Secret with the
	// password or certificate of Azure's service principal, in ObjectNamespace. The identity only refers to it.
	SecretName string
	// Issuer is the URL of the issuer of the management cluster's service account tokens, for web identity on AWS and workload identity on
	// Azure.
	Issuer string
}

// environmentLabel is on the namespaces of an environment's clusters.
const environmentLabel = "fleetctl.dev/environment"

// File returns the path of the identity's file in the repo.
func (o *IdentityOptions) File() string {
	return path.Join(o.Management, "identities", o.Provider+"-"+o.Name+".yaml")
}

var (
	roleARN    = regexp.MustCompile(`^arn:(aws[a-z-]*):iam::(\d{12}):role/[A-Za-z0-9+=,.@_/-]+$`)
	anyIAMARN  = regexp.MustCompile(`^arn:aws[a-z-]*:iam::\d{12}:(role|user)/[A-Za-z0-9+=,.@_/-]+$`)
	externalID = regexp.MustCompile(`^[\w+=,.@:/-]+$`)
	azureID    = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
)

// Check returns an error for options with which no management cluster could have the identity.
func (o *IdentityOptions) Check() error {
	if err := CheckLabel("identity", o.Name, maxIdentityName); err != nil {
		return err
	}
	if o.Provider != "" && o.Provider != "gcp" && o.Provider != identityOpenStack && !slices.Contains(IdentityProviders(), o.Provider) {
		return unknownIdentityProvider(o.Provider, IdentityProviders())
	}
	for _, n := range slices.Concat(o.Namespaces, o.Environments) {
		if err := CheckLabel("namespace", n, maxIdentityName); err != nil {
			return err
		}
	}
	if len(o.Namespaces) == 0 && len(o.Environments) == 0 {
		return diag.Usage("give --environment NAME or --namespace NAME", "nothing says which clusters may use identity %s", o.Name)
	}
	if o.Issuer != "" && !v1alpha1.IsIssuer(o.Issuer) {
		return diag.Usage("write it as https://oidc.example.com/mgmt: "+
			"the cloud reads the issuer over https, and compares its address letter by letter",
			"--issuer %.80q is not a valid address of an issuer", o.Issuer)
	}
	switch o.Provider {
	case IdentityAWS:
		return o.checkAWS()
	case IdentityAzure:
		return o.checkAzure()
	case IdentityVSphere:
		return o.checkSecretName()
	case "gcp":
		return diag.Usage("put a Secret with the key `credentials` into the cluster's namespace, and name it with `--set identity.name=SECRET` "+
			"in `fleetctl cluster add`; docs/tasks/google-cloud.md shows how it needs no key",
			"Google Cloud's provider has no identity objects")
	case identityOpenStack:
		return diag.Usage("write an OpenStackClusterIdentity into "+path.Join("mgmt", "identities")+" yourself, or give each cluster a Secret "+
			"with the key `clouds.yaml` in its namespace: docs/tasks/openstack.md shows both",
			"there is no scaffold for identities of OpenStack")
	}
	return diag.Usage("give --provider, one of "+strings.Join(IdentityProviders(), ", "), "nothing says which provider the identity is for")
}

// CheckIdentityProvider returns an error for a provider of which a fleet repo can have no identities.
func CheckIdentityProvider(name string) error {
	known := slices.Compact(slices.Sorted(maps.Values(identityKinds)))
	if slices.Contains(known, name) {
		return nil
	}
	return unknownIdentityProvider(name, known)
}

// unknownIdentityProvider is the error for a provider that is not among those with identities.
func unknownIdentityProvider(name string, known []string) error {
	return diag.Usage(diag.Among(name, known), "there is no provider %.40q with identities", name)
}

func (o *IdentityOptions) checkAWS() error {
	if o.SecretName != "" {
		return o.checkAWSKey()
	}
	if o.RoleARN == "" {
		return diag.Usage("give --role-arn, or --secret with the name of a Secret for an access key",
			"nothing says how the identity gets into AWS")
	}
	if !roleARN.MatchString(o.RoleARN) {
		return diag.Usage("give one such as arn:aws:iam::111122223333:role/fleet-staging",
			"--role-arn %.120q is not the ARN of a role", o.RoleARN)
	}
	if o.TrustedARN != "" && !anyIAMARN.MatchString(o.TrustedARN) {
		return diag.Usage("give one such as arn:aws:iam::111122223333:role/NAME",
			"--trusted-arn %.120q is not the ARN of a role or a user", o.TrustedARN)
	}
	if o.ExternalID != "" && !IsExternalID(o.ExternalID) {
		return diag.Usage("use 2 to 1224 letters, digits and _ + = , . @ : / -", "AWS does not accept --external-id %.80q", o.ExternalID)
	}
	return o.checkAWSIssuer()
}

// checkAWSIssuer refuses an issuer of which AWS can make no identity provider, and a principal that cannot trust one.
func (o *IdentityOptions) checkAWSIssuer() error {
	if o.Issuer == "" {
		return nil
	}
	if strings.Contains(o.TrustedARN, ":user/") {
		return diag.Usage("give --trusted-arn the role of the controllers, or leave out --issuer",
			"--trusted-arn %.120q is a user, and only a role trusts an issuer", o.TrustedARN)
	}
	if u, err := url.Parse(o.Issuer); err != nil || u.Port() != "" {
		return diag.Usage("serve the issuer's documents at port 443, and write its address without a port",
			"--issuer %.80q has a port, and AWS takes no identity provider with one", o.Issuer)
	}
	return nil
}

// IsExternalID tells whether AWS accepts a text as the external ID with which a role is assumed.
func IsExternalID(text string) bool {
	const shortest, longest = 2, 1224
	return len(text) >= shortest && len(text) <= longest && externalID.MatchString(text)
}

// sessionName returns the name that the identity's sessions have in AWS's logs.
func (o *IdentityOptions) sessionName() string {
	const longest = 64 // AWS's limit
	name := "fleet-" + o.Name
	return name[:min(len(name), longest)]
}

// allowed returns the namespaces that may use the identity, in the form of its provider. All providers accept a selector; vSphere accepts
// nothing else.
func (o *IdentityOptions) allowed() map[string]any {
	allowed := map[string]any{}
	switch {
	case len(o.Environments) > 0 && len(o.Namespaces) == 0 && len(o.Environments) == 1:
		allowed["selector"] = map[string]any{"matchLabels": map[string]any{environmentLabel: o.Environments[0]}}
	case len(o.Environments) > 0:
		allowed["selector"] = selectorIn(environmentLabel, o.Environments)
	}
	if len(o.Namespaces) > 0 {
		if o.Provider == IdentityVSphere {
			allowed["selector"] = selectorIn("kubernetes.io/metadata.name", o.Namespaces)
		} else {
			allowed["list"] = o.Namespaces
		}
	}
	return allowed
}

func selectorIn(label string, values []string) map[string]any {
	return map[string]any{"matchExpressions": []any{map[string]any{"key": label, "operator": "In", "values": values}}}
}

// IdentityFile returns the file of an identity. Errors: those of IdentityOptions.Check.
func IdentityFile(o IdentityOptions) (manifest.File, error) {
	if err := o.Check(); err != nil {
		return manifest.File{}, err
	}
	if o.Provider == IdentityVSphere && len(o.Namespaces) > 0 && len(o.Environments) > 0 {
		return manifest.File{}, diag.Usage("make two identities", "an identity of vSphere is either for environments or for namespaces")
	}
	object := func(apiVersion, kind, namespace string, spec map[string]any) map[string]any {
		metadata := map[string]any{"name": o.Name}
		if namespace != "" {
			metadata["namespace"] = namespace
		}
		spec["allowedNamespaces"] = o.allowed()
		return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata, "spec": spec}
	}
	var objects []map[string]any
	comment := "# Only clusters in the namespaces below may use this identity.\n"
	switch o.Provider {
	case IdentityAWS:
		kind, spec := o.awsSpec()
		objects = append(objects, object("infrastructure.cluster.x-k8s.io/v1beta2", kind, "", spec))
	case IdentityAzure:
		objects = append(objects, object("infrastructure.cluster.x-k8s.io/v1beta1", "AzureClusterIdentity", o.ObjectNamespace, o.azureSpec()))
	case IdentityVSphere:
		objects = append(objects, object("infrastructure.cluster.x-k8s.io/v1beta1", "VSphereClusterIdentity", "",
			map[string]any{"secretName": o.SecretName}))
	}
	comment += o.commentOnSecret()
	content := bytes.NewBufferString(comment)
	encoder := yaml.NewEncoder(content)
	encoder.SetIndent(2)
	for _, each := range objects {
		if err := encoder.Encode(each); err != nil {
			return manifest.File{}, fmt.Errorf("write identity %s: %w", o.Name, err)
		}
	}
	return manifest.File{Path: o.File(), Content: content.Bytes()}, encoder.Close()
}

// IdentityNamespaceFile returns the file with the namespace of Azure's identities. It is a separate file because the identities share the
// namespace.
func IdentityNamespaceFile(o IdentityOptions) manifest.File {
	return manifest.File{
		Path:    path.Join(o.Management, "identities", "namespace-"+o.ObjectNamespace+".yaml"),
		Content: []byte("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + o.ObjectNamespace + "\n"),
	}
}

func indented(value any) (string, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	return out.String(), nil
}
