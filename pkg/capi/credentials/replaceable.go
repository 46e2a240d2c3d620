package credentials

import "slices"

// Replaceable is a credential that a provider does not need where it runs on machines of its own cloud, because the cloud gives such
// machines credentials that change by themselves.
type Replaceable struct {
	// Provider is the name of an infrastructure provider, and Variable the variable of the provider with the credential.
	Provider, Variable string
	// None is the value of the variable for a provider without this credential.
	None string
	// NodePrefix is what the provider IDs of the cloud's nodes begin with.
	NodePrefix string
	// Lease is the name of the Lease whose holder is the provider's active controller.
	Lease string
	// Kinds are the kinds of objects for which the controller asks the cloud, and Condition the condition in which it tells that the cloud
	// has answered. Identity is the field of spec that chooses the identity for these questions.
	Kinds     []string
	Condition string
	Identity  string
}

// IsNone tells whether value, of a variable of the infrastructure provider, says that the provider has no credential.
func IsNone(provider, variable, value string) bool {
	return slices.ContainsFunc(AllReplaceable(), func(r Replaceable) bool {
		return r.Provider == provider && r.Variable == variable && r.None == value
	})
}

// AllReplaceable returns the credentials that providers can do without. The value without a credential is the one of `clusterawsadm
// controller zero-credentials` in the sources of the provider aws. The other clouds' providers need a credential or an identity in any
// case: Google Cloud's ends without the file of its key, and vSphere's machines have no identity.
func AllReplaceable() []Replaceable {
	return []Replaceable{{
		Provider: "aws", Variable: "AWS_B64ENCODED_CREDENTIALS", None: "Cg==", NodePrefix: "aws://", Lease: "controller-leader-elect-capa",
		Kinds: []string{"AWSCluster", "AWSManagedControlPlane"}, Condition: "VpcReady", Identity: "identityRef",
	}}
}
