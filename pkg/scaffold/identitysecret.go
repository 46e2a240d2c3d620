package scaffold

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// The types of Azure's identities that can be added.
const (
	AzureWorkload         = "WorkloadIdentity"
	AzureServicePrincipal = "ServicePrincipal"
	AzureCertificate      = "ServicePrincipalCertificate"
	AzureMSI              = "UserAssignedMSI"
)

// AzureIdentityTypes returns the types of Azure's identities that can be added, the best one first.
func AzureIdentityTypes() []string {
	return []string{AzureWorkload, AzureMSI, AzureCertificate, AzureServicePrincipal}
}

// azureType is the type of an identity of Azure; "" for other providers.
func (o *IdentityOptions) azureType() string {
	switch {
	case o.Provider != IdentityAzure || o.Type != "":
		return o.Type
	case o.SecretName != "":
		return AzureServicePrincipal
	}
	return AzureWorkload
}

// checkAWSKey checks the options of an identity with an access key.
func (o *IdentityOptions) checkAWSKey() error {
	for _, f := range [][2]string{
		{"--role-arn", o.RoleARN}, {"--external-id", o.ExternalID}, {"--trusted-arn", o.TrustedARN}, {"--issuer", o.Issuer},
	} {
		if f[1] != "" {
			return diag.Usage("give --role-arn without --secret: a role needs no key; or --secret alone",
				"an identity with an access key has no %s", f[0])
		}
	}
	return o.checkSecretName()
}

func (o *IdentityOptions) checkSecretName() error {
	return CheckLabel("secret", o.SecretName, maxIdentityName)
}

func (o *IdentityOptions) checkAzure() error {
	for _, id := range [][2]string{{"--tenant-id", o.TenantID}, {"--client-id", o.ClientID}} {
		if !azureID.MatchString(id[1]) {
			return diag.Usage("`az account show` prints the tenant's; `az identity show` or `az ad sp show` the client's",
				"%s %.60q is not an ID of Azure", id[0], id[1])
		}
	}
	kind := o.azureType()
	hasSecret := kind == AzureServicePrincipal || kind == AzureCertificate
	switch {
	case !slices.Contains(AzureIdentityTypes(), kind):
		return diag.Usage("give one of "+strings.Join(AzureIdentityTypes(), ", "), "--type %.40q is no type of identity that can be added", kind)
	case hasSecret && o.SecretName == "":
		return diag.Usage("give --secret with the name of the Secret", "an identity of the type %s needs a Secret", kind)
	case !hasSecret && o.SecretName != "":
		return diag.Usage("leave out --secret, or give --type "+AzureServicePrincipal, "an identity of the type %s needs no Secret", kind)
	case o.Issuer != "" && kind != AzureWorkload:
		return diag.Usage("leave it out, or give --type "+AzureWorkload, "an identity of the type %s has no --issuer", kind)
	case hasSecret:
		if err := o.checkSecretName(); err != nil {
			return err
		}
	}
	return CheckLabel("namespace", o.ObjectNamespace, maxIdentityName)
}

// awsSpec returns the kind and the spec of an identity of AWS, without the namespaces.
func (o *IdentityOptions) awsSpec() (kind string, spec map[string]any) {
	if o.SecretName != "" {
		return "AWSClusterStaticIdentity", map[string]any{"secretRef": o.SecretName}
	}
	spec = map[string]any{
		"roleARN": o.RoleARN, "sourceIdentityRef": map[string]any{"kind": "AWSClusterControllerIdentity", "name": "default"},
		"sessionName": o.sessionName(),
	}
	if o.ExternalID != "" {
		spec["externalID"] = o.ExternalID
	}
	return "AWSClusterRoleIdentity", spec
}

// azureSpec returns the spec of an identity of Azure, without the namespaces.
func (o *IdentityOptions) azureSpec() map[string]any {
	spec := map[string]any{"type": o.azureType(), "tenantID": o.TenantID, "clientID": o.ClientID}
	if o.SecretName != "" {
		spec["clientSecret"] = map[string]any{"name": o.SecretName, "namespace": o.ObjectNamespace}
	}
	return spec
}

// commentOnSecret says, in the identity's file, where its secret is.
func (o *IdentityOptions) commentOnSecret() string {
	switch {
	case o.Provider == IdentityVSphere:
		return "# The Secret with the user and password is in the provider's namespace. The provider adds an owner reference to it.\n"
	case o.Provider == IdentityAWS && o.SecretName != "":
		return "# The Secret with the access key is in the provider's namespace. The provider adds an owner reference to it.\n"
	case o.SecretName != "":
		return "# The Secret holds the password or the certificate of the service principal, under the key clientSecret.\n"
	case o.azureType() == AzureWorkload:
		return "# Azure trusts the tokens of the management cluster's service accounts, so there is no secret to keep or to rotate.\n"
	case o.azureType() == AzureMSI:
		return "# The machines of the management cluster have this managed identity, so there is no secret to keep or to rotate.\n"
	}
	return ""
}

// SecretNamespace returns the namespace in which the provider looks for the Secret of the identity.
func (o *IdentityOptions) SecretNamespace() string {
	switch o.Provider {
	case IdentityAWS:
		return "capa-system"
	case IdentityVSphere:
		return "capv-system"
	}
	return o.ObjectNamespace
}

// secretToFill returns the Secret of an identity, with a place for each secret. No secret is ever an option of fleetctl.
func (o *IdentityOptions) secretToFill() string {
	what := "a user of vCenter, who should have only the rights that the clusters need"
	fields := "  username: USER@DOMAIN\n  password: PASSWORD\n"
	switch {
	case o.Provider == IdentityAWS:
		what = "an access key of a user of IAM, who should have only the rights that the clusters need. A temporary key also has SessionToken"
		fields = "  AccessKeyID: ACCESS_KEY_ID\n  SecretAccessKey: SECRET_ACCESS_KEY\n"
	case o.azureType() == AzureCertificate:
		what = "the certificate of the service principal " + o.ClientID + " and its private key, without a password"
		fields = "  clientSecret: |\n    CERTIFICATE_AND_PRIVATE_KEY_IN_PEM\n"
	case o.Provider == IdentityAzure:
		what = "the password of the service principal " + o.ClientID
		fields = "  clientSecret: PASSWORD\n"
	}
	return fmt.Sprintf(`# A Secret with %s.
# Encrypt the Secret before you commit it; the name of its file has to end in .sops.yaml:
#   fleetctl secret encrypt FILE
apiVersion: v1
kind: Secret
metadata:
  name: %s
  namespace: %s
stringData:
%s`, what, o.SecretName, o.SecretNamespace(), fields)
}
