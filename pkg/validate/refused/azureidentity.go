package refused

// azureIdentity judges an identity as the provider does when a cluster first uses it. The webhook checks only the fields of other types.
func azureIdentity(p part) {
	const workload, principal, certificate, file = "WorkloadIdentity", "ServicePrincipal", "ServicePrincipalCertificate",
		"UserAssignedIdentityCredential"
	kind, known := p.known("type")
	if !known {
		return
	}
	needsSecret := kind == principal || kind == "Manual"+principal || kind == certificate && !p.given("certPath")
	secret := p.in("clientSecret")
	switch {
	case needsSecret && !secret.given("name"):
		p.refuse("clientSecret", "an identity of the type "+kind+" needs a Secret",
			"add clientSecret, with the name and namespace of a Secret that has the key clientSecret; or use the type "+workload)
	case needsSecret && !secret.given("namespace"):
		secret.refuse("namespace", "the provider looks for the Secret in no namespace", "add the namespace of the Secret")
	}
	if p.has("resourceID") && kind != "UserAssignedMSI" {
		p.refuse("resourceID", "only an identity of the type UserAssignedMSI can have it", "remove it")
	}
	for _, field := range []string{"userAssignedIdentityCredentialsPath", "userAssignedIdentityCredentialsCloudType"} {
		if p.has(field) && kind != file {
			p.refuse(field, "only an identity of the type "+file+" can have it", "remove it")
		}
	}
}
