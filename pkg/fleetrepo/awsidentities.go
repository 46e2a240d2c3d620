package fleetrepo

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
)

// The kinds of AWS's identities.
const (
	AWSOwnIdentity    = "AWSClusterControllerIdentity"
	AWSRoleIdentity   = "AWSClusterRoleIdentity"
	AWSStaticIdentity = "AWSClusterStaticIdentity"
)

// AWSIdentityRef names an identity.
type AWSIdentityRef struct{ Kind, Name string }

// AWSIdentity is an identity of AWS in the fleet repo, or one that a cluster there uses.
type AWSIdentity struct {
	AWSIdentityRef

	// RoleARN, ExternalID and SessionName are those of a role.
	RoleARN, ExternalID, SessionName string
	// Source is the identity that assumes the role.
	Source AWSIdentityRef
	// File declares the identity. For an identity that the fleet repo does not declare, it is the file of a cluster that uses it.
	File     string
	Declared bool
}

// AWSIdentities returns the identities through which clusters of a management cluster are in AWS, sorted: those that its files declare, and
// those that its clusters use. It leaves out the identity of the provider's own pods, and files that cannot be read.
func (r *Repo) AWSIdentities(management string) ([]AWSIdentity, error) {
	m, err := r.managementCluster(management)
	if err != nil {
		return nil, err
	}
	folders := []string{m.Layout().Management()}
	for _, l := range r.Fleet.Layouts(m) {
		folders = append(folders, l.Clusters())
	}
	var declared, used []AWSIdentity
	mentions := func(src []byte) bool { return bytes.Contains(src, []byte("dentity")) }
	for _, folder := range folders {
		err := r.eachDocument(folder, mentions, func(file string, document *yaml.Node) {
			if identity, ok := awsIdentityOf(document); ok {
				identity.File = file
				declared = append(declared, identity)
			}
			if ref := awsIdentityUsed(document); ref.Name != "" {
				used = append(used, AWSIdentity{AWSIdentityRef: ref, File: file})
			}
		})
		if err != nil {
			return nil, err
		}
	}
	all := declared
	for _, u := range used {
		if !slices.ContainsFunc(all, func(i AWSIdentity) bool { return i.AWSIdentityRef == u.AWSIdentityRef }) {
			all = append(all, u)
		}
	}
	all = slices.DeleteFunc(all, func(i AWSIdentity) bool { return i.Kind == AWSOwnIdentity })
	slices.SortFunc(all, func(a, b AWSIdentity) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.File, b.File))
	})
	return slices.Compact(all), nil
}

// plainText is the text of a field, or "" if Flux fills in a part of it.
func plainText(n *yaml.Node, fields ...any) string {
	if value := text(yamledit.Resolve(yamledit.Find(n, fields...))); !strings.Contains(value, "${") {
		return value
	}
	return ""
}

func isAWSIdentity(kind string) bool {
	return slices.Contains([]string{AWSOwnIdentity, AWSRoleIdentity, AWSStaticIdentity}, kind)
}

func awsIdentityOf(document *yaml.Node) (AWSIdentity, bool) {
	identity := AWSIdentity{Declared: true}
	identity.Kind, identity.Name = text(yamledit.Find(document, "kind")), text(yamledit.Find(document, "metadata", "name"))
	if !isAWSIdentity(identity.Kind) {
		return identity, false
	}
	spec := yamledit.Resolve(yamledit.Find(document, "spec"))
	identity.RoleARN, identity.ExternalID = plainText(spec, "roleARN"), plainText(spec, "externalID")
	identity.SessionName = plainText(spec, "sessionName")
	identity.Source = AWSIdentityRef{plainText(spec, "sourceIdentityRef", "kind"), plainText(spec, "sourceIdentityRef", "name")}
	return identity, true
}

// awsIdentityUsed returns the identity of AWS that a cluster names, in the values of a chart or in its objects.
func awsIdentityUsed(document *yaml.Node) AWSIdentityRef {
	for _, at := range []*yaml.Node{
		yamledit.Find(document, "spec", "identityRef"), yamledit.Find(document, "spec", "template", "spec", "identityRef"),
		yamledit.Find(document, "spec", "values", "identity"),
	} {
		if ref := (AWSIdentityRef{text(yamledit.Find(at, "kind")), text(yamledit.Find(at, "name"))}); isAWSIdentity(ref.Kind) {
			return ref
		}
	}
	if isAWSChart(text(yamledit.Find(document, "spec", "chartRef", "name"))) ||
		isAWSChart(text(yamledit.Find(document, "spec", "chart", "spec", "chart"))) {
		// The charts' default.
		return AWSIdentityRef{AWSRoleIdentity, text(yamledit.Find(document, "spec", "values", "identity", "name"))}
	}
	return AWSIdentityRef{}
}

// isAWSChart tells whether a chart is one of AWS, by the flavour in its name. The name of an environment may stand before the flavour.
func isAWSChart(name string) bool {
	return strings.LastIndex(name, "aws-") > max(strings.LastIndex(name, "azure-"), strings.LastIndex(name, "gcp-"),
		strings.LastIndex(name, "vsphere-"))
}
