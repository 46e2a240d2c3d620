package fleetrepo

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// Identity is an object by which clusters get access to a cloud, as a management cluster's configuration declares it.
type Identity struct {
	Name string `json:"name"`
	// Provider of the identity: aws, azure, openstack or vsphere.
	Provider string `json:"provider"`
	Kind     string `json:"kind"`
	// Namespace of the object, if its kind is namespaced.
	Namespace         string `json:"namespace,omitempty"`
	ManagementCluster string `json:"managementCluster"`
	// Admits says in words whose clusters may use the identity.
	Admits string `json:"admits"`
	// File that declares the identity, and Line in it, from 1.
	File string `json:"file"`
	Line int    `json:"line"`

	// alone says that the file has no other object.
	alone bool
	// secret is a Secret that goes together with the identity, because the provider makes the identity its owner.
	secret string
}

// Identities lists the identities in the management clusters' own configuration, sorted by management cluster and file.
// It skips files that are not YAML: `fleetctl validate` reports them.
func (r *Repo) Identities() ([]Identity, error) {
	all := []Identity{}
	for i := range r.Fleet.Spec.ManagementClusters {
		m := &r.Fleet.Spec.ManagementClusters[i]
		if m.Repository != nil {
			continue
		}
		files, err := r.filesBelow(m.Layout().Management())
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			found, err := r.identitiesIn(file)
			if err != nil {
				return nil, err
			}
			for _, identity := range found {
				identity.ManagementCluster = m.Name
				all = append(all, identity)
			}
		}
	}
	return all, nil
}

// IdentityNames returns the names of Identities; none if they cannot be read.
func (r *Repo) IdentityNames() []string {
	all, _ := r.Identities()
	var names []string
	for i := range all {
		names = append(names, all[i].Name)
	}
	return sortedSet(names)
}

func (r *Repo) identitiesIn(file string) ([]Identity, error) {
	if ext := path.Ext(file); ext != ".yaml" && ext != ".yml" {
		return nil, nil
	}
	content, err := r.read(file)
	if err != nil || !bytes.Contains(content, []byte("ClusterIdentity")) && !bytes.Contains(content, []byte("AWSCluster")) {
		return nil, err
	}
	documents, err := yamledit.ParseWithin(content, yamledit.ReadLimits)
	if err != nil {
		return nil, nil //nolint:nilerr // validate reports it, with its line
	}
	var found []Identity
	for _, d := range documents {
		provider := scaffold.IdentityProvider(text(yamledit.Find(d, "kind")))
		if provider == "" || !strings.HasPrefix(text(yamledit.Find(d, "apiVersion")), "infrastructure.cluster.x-k8s.io/") {
			continue
		}
		identity := Identity{
			Name: text(yamledit.Find(d, "metadata", "name")), Namespace: text(yamledit.Find(d, "metadata", "namespace")), Provider: provider,
			Kind: text(yamledit.Find(d, "kind")), File: file, Line: max(d.Line, 1), alone: len(documents) == 1, Admits: admits(d),
		}
		switch identity.Kind {
		case "VSphereClusterIdentity":
			identity.secret = text(yamledit.Find(d, "spec", "secretName"))
		case AWSStaticIdentity:
			identity.secret = text(yamledit.Find(d, "spec", "secretRef"))
		}
		found = append(found, identity)
	}
	return found, nil
}

// admits says in words whose clusters may use an identity. Each provider has its own rules: AWS, Azure and vSphere
// admit no namespace without allowedNamespaces, and every namespace with an empty one. OpenStack admits every namespace
// without namespaceSelector.
func admits(identity *yaml.Node) string {
	field, absent := "allowedNamespaces", "no cluster"
	if text(yamledit.Find(identity, "kind")) == "OpenStackClusterIdentity" {
		field, absent = "namespaceSelector", "all clusters"
	}
	node := yamledit.Find(identity, "spec", field)
	if node == nil || node.ShortTag() == "!!null" {
		return absent
	}
	var says struct {
		metav1.LabelSelector `json:",inline"`

		List     []string              `json:"list"`
		Selector *metav1.LabelSelector `json:"selector"`
	}
	content, err := yaml.Marshal(node)
	if err == nil {
		err = sigsyaml.Unmarshal(content, &says)
	}
	if err != nil {
		return "?"
	}
	selector := says.Selector
	if field == "namespaceSelector" {
		selector = &says.LabelSelector
	}
	var parts []string
	if len(says.List) > 0 {
		parts = append(parts, "namespaces "+strings.Join(says.List, ", "))
	}
	if selector != nil && len(selector.MatchLabels)+len(selector.MatchExpressions) > 0 {
		parts = append(parts, "namespaces with "+metav1.FormatLabelSelector(selector))
	}
	if len(parts) == 0 {
		return "all clusters"
	}
	return strings.Join(parts, "; ")
}

// RemoveIdentity removes an identity from the configuration of its management cluster. cluster and provider choose
// among several identities of one name; "" is any. It does not check whether a cluster still refers to the identity,
// because every edit is judged for that. Errors: an unknown identity, several identities of the name, a file with other
// objects.
func (r *Repo) RemoveIdentity(cluster, provider, name string) (*Edit, error) {
	var m *v1alpha1.ManagementCluster
	var err error
	if provider != "" {
		if err := scaffold.CheckIdentityProvider(provider); err != nil {
			return nil, err
		}
	}
	if cluster != "" {
		if m, err = r.managementCluster(cluster); err != nil {
			return nil, err
		}
	}
	everywhere, err := r.Identities()
	if err != nil {
		return nil, err
	}
	all := slices.DeleteFunc(slices.Clone(everywhere), func(i Identity) bool {
		return m != nil && i.ManagementCluster != m.Name || provider != "" && i.Provider != provider
	})
	var names, places []string
	var found []Identity
	for _, i := range all {
		names = append(names, i.Name)
		if i.Name == name {
			found = append(found, i)
			places = append(places, fmt.Sprintf("%s %s on %s", i.Provider, i.Kind, i.ManagementCluster))
		}
	}
	switch {
	case len(found) == 0:
		return nil, noIdentity(name, names, everywhere)
	case len(found) > 1:
		return nil, diag.Usage("choose one with --provider or --management", "several identities are called %s: %s", name,
			strings.Join(places, ", "))
	}
	identity := &found[0]
	if !identity.alone {
		return nil, diag.Errorf("remove it in an editor", "%s:%d: identity %s is in a file with other objects",
			identity.File, identity.Line, name)
	}
	if m, err = r.managementCluster(identity.ManagementCluster); err != nil {
		return nil, err
	}
	e := &Edit{Summary: fmt.Sprintf("Remove identity %s of %s from management cluster %s", name, identity.Provider, m.Name)}
	e.Changes.Delete(identity.File)
	switch {
	case identity.secret == "":
	case identity.Kind == AWSStaticIdentity:
		e.Notes = append(e.Notes, "If a cluster has used it, Kubernetes deletes the Secret "+identity.secret+" with it.")
	default:
		e.Notes = append(e.Notes, "Its provider deletes the Secret "+identity.secret+" with it.")
	}
	if file := identityNamespaceFile(m, identity); r.exists(file) {
		e.Notes = append(e.Notes, "Its namespace stays; "+file+" declares it.")
	}
	e.Notes = append(e.Notes, "What was made for it in the cloud stays there.")
	return e, r.enlist(&e.Changes, m.Layout().Management(), identity.File, false)
}

// noIdentity is the error for an identity that is not among the names. It says where there is one of the name.
func noIdentity(name string, among []string, everywhere []Identity) error {
	if i := slices.IndexFunc(everywhere, func(i Identity) bool { return i.Name == name }); i >= 0 {
		return diag.Usage("leave --provider and --management out, or give those of the identity",
			"there is no identity %q there: it is one of %s on %s", name, everywhere[i].Provider, everywhere[i].ManagementCluster)
	}
	return diag.Unknown("identity", name, sortedSet(among), "`fleetctl identity add "+name+"` makes one")
}

// identityNamespaceFile is the file that AddIdentity writes for the namespace of an identity.
func identityNamespaceFile(m *v1alpha1.ManagementCluster, identity *Identity) string {
	return scaffold.IdentityNamespaceFile(scaffold.IdentityOptions{
		Management:      m.Layout().Management(),
		ObjectNamespace: identity.Namespace,
	}).Path
}
