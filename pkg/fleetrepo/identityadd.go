package fleetrepo

import (
	"bytes"
	"fmt"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// AddIdentity writes an object by which clusters get their credentials into the configuration of a management cluster; "" is the only one that has the
// identity's provider. Errors: a management cluster without that provider, an unknown environment, a file that is there with something else.
func (r *Repo) AddIdentity(cluster string, o scaffold.IdentityOptions) (*Edit, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	m, err := r.managementClusterFor(cluster, o.Provider+"-kubeadm")
	if err != nil {
		return nil, err
	}
	if len(o.Environments) > 0 {
		if _, err := r.chosen(o.Environments); err != nil {
			return nil, err
		}
	}
	o.Management = m.Layout().Management()
	file, err := scaffold.IdentityFile(o)
	if err != nil {
		return nil, err
	}
	e := &Edit{
		Summary:  fmt.Sprintf("Add identity %s of %s to management cluster %s", o.Name, o.Provider, m.Name),
		AsWanted: fmt.Sprintf("identity %s is there", o.Name),
	}
	if r.exists(file.Path) {
		there, err := r.read(file.Path)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(there, file.Content) {
			return nil, diag.Errorf("edit it, or remove it first", "%s is there, and is another identity", file.Path)
		}
	}
	e.Changes.Write(file)
	if err := r.enlist(&e.Changes, m.Layout().Management(), file.Path, true); err != nil {
		return nil, err
	}
	if o.Provider == scaffold.IdentityVSphere {
		e.Notes = append(e.Notes, "The Secret "+o.SecretName+" has to be in the provider's namespace before.")
	}
	e.Notes = append(e.Notes, fmt.Sprintf("A cluster uses it with --set identity.name=%s.", o.Name))
	return e, nil
}
