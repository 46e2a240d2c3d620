package fleetrepo

import (
	"fmt"
	"path"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// AddIdentity writes an object by which clusters get credentials into the configuration of a management cluster. ""
// means the only management cluster that has the identity's provider. Errors: a management cluster without that
// provider, an unknown environment, an existing file with other content.
func (r *Repo) AddIdentity(cluster string, o scaffold.IdentityOptions) (*Edit, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	m, err := r.managementClusterFor(cluster, o.Provider+"-kubeadm", maker{provider: o.Provider})
	if err != nil {
		return nil, err
	}
	if len(o.Environments) > 0 {
		if o.Environments, err = r.chosen(o.Environments); err != nil {
			return nil, err
		}
	}
	declared, err := issuerOf(m, o.Issuer)
	if err != nil {
		return nil, err
	}
	o.Management = m.Layout().Management()
	file, err := scaffold.IdentityFile(o)
	if err != nil {
		return nil, err
	}
	e := &Edit{
		Summary:  fmt.Sprintf("Add identity %s of %s to management cluster %s", o.Name, o.Provider, m.Name),
		AsWanted: fmt.Sprintf("identity %s exists", o.Name),
	}
	if r.exists(file.Path) {
		there, err := r.read(file.Path)
		if err != nil {
			return nil, err
		}
		if !manifest.SameText(there, file.Content) {
			return nil, diag.Errorf("edit it, or `fleetctl identity remove "+o.Name+"` first", "%s exists, and is another identity", file.Path)
		}
	}
	files := []manifest.File{file}
	if o.Provider == scaffold.IdentityAzure {
		there, err := r.declaresNamespace(o.Management, o.ObjectNamespace)
		if err != nil {
			return nil, err
		}
		if !there {
			files = append(files, scaffold.IdentityNamespaceFile(o))
		}
	}
	for _, file := range files {
		r.writeText(&e.Changes, file)
		if err := r.enlist(&e.Changes, o.Management, file.Path, true); err != nil {
			return nil, err
		}
	}
	if o.SecretName != "" {
		secret := path.Join(o.Management, "identities", o.SecretName+".sops.yaml")
		e.Notes = append(e.Notes, fmt.Sprintf("The Secret %s has to exist in the namespace %s first. In Git it is a file such as %s, encrypted "+
			"with %s.", o.SecretName, o.SecretNamespace(), secret, diag.ShellCommand("fleetctl", "secret", "encrypt", secret)))
	}
	if declared != "" {
		e.Notes = append(e.Notes, declared)
	}
	e.Notes = append(e.Notes, "A cluster uses it with "+identityFlags(o)+".")
	return e, nil
}

// issuerOf holds the issuer that a cloud is to trust against the one that an embedded host declares, because the cloud compares both
// letter by letter. It returns a note if the host does not declare an issuer yet. Only the cluster itself knows the issuer of other hosts.
func issuerOf(m *v1alpha1.ManagementCluster, issuer string) (note string, _ error) {
	if issuer == "" || m.Host.Type != v1alpha1.HostEmbedded {
		return "", nil
	}
	declared := ""
	if m.Host.Embedded != nil {
		declared = m.Host.Embedded.ServiceAccountIssuer
	}
	switch declared {
	case issuer:
		return "", nil
	case "":
		return fmt.Sprintf("The cloud accepts the tokens of management cluster %s once its host in fleet.yaml has `serviceAccountIssuer: %s` "+
			"under `embedded:`.", m.Name, issuer), nil
	}
	return "", diag.Usage("give --issuer "+declared, "management cluster %s issues its tokens as %s, and not as --issuer %.120q",
		m.Name, declared, issuer)
}

// identityFlags returns the flags of `fleetctl cluster add` for a cluster of the provider's kubeadm flavour that uses
// the identity. Azure needs the identity's namespace, because the chart would otherwise take the cluster's own.
func identityFlags(o scaffold.IdentityOptions) string {
	flags := "--set identity.name=" + o.Name
	if o.Provider == scaffold.IdentityAWS && o.SecretName != "" { // the chart's default is a role
		flags = "--set identity.kind=" + AWSStaticIdentity + " " + flags
	}
	if o.Provider == scaffold.IdentityAzure {
		flags += " --set identity.namespace=" + o.ObjectNamespace
	}
	return flags
}

// declaresNamespace tells whether a file below the folder dir declares a namespace. It skips files that are not YAML,
// because rendering reports them.
func (r *Repo) declaresNamespace(dir, name string) (bool, error) {
	files, err := r.filesBelow(dir)
	if err != nil {
		return false, err
	}
	for _, file := range files {
		if ext := path.Ext(file); ext != ".yaml" && ext != ".yml" {
			continue
		}
		content, err := r.read(file)
		if err != nil {
			return false, err
		}
		documents, err := yamledit.ParseWithin(content, yamledit.ReadLimits)
		if err != nil {
			continue
		}
		for _, d := range documents {
			if text(yamledit.Find(d, "apiVersion")) == "v1" && text(yamledit.Find(d, "kind")) == "Namespace" &&
				text(yamledit.Find(d, "metadata", "name")) == name {
				return true, nil
			}
		}
	}
	return false, nil
}
