package v1alpha1

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Set returns src with the text value at path, such as spec.flux.version or spec.managementClusters[0].providers[1].version,
// changed or added. All other bytes stay as they are: comments, order, quotes, line ends. Fields on the way that are missing are
// added, list items are not. Errors are those of the YAML syntax, a path that does not lead to a text value, or
// yamledit.ErrCannotEdit.
func Set(src []byte, path, value string) ([]byte, error) {
	steps, err := yamledit.ParsePath(path)
	if err != nil {
		return nil, err
	}
	if !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) {
		return nil, fmt.Errorf("set %s: value holds a line end or another character that is not text", path)
	}
	if _, finding := parse(src); finding != nil {
		return nil, diag.Findings{*finding}
	}
	changed, err := yamledit.Set(src, 0, steps, value)
	if err != nil {
		return nil, diag.Wrap("set "+path, err, fmt.Sprintf("write it there yourself: %s", value))
	}
	return changed, nil
}

// SetProviderVersion returns src, a fleet.yaml, with the version of a provider of a management cluster ("" if there is only
// one) changed or added, and the provider itself added where it is not listed. All other bytes stay as they are. Errors are those of Set
// and of ManagementCluster.
func SetProviderVersion(src []byte, mgmt string, providerType ProviderType, providerName, version string) ([]byte, error) {
	fleet, err := Decode(FileName, src)
	if err != nil {
		return nil, err
	}
	cluster, err := fleet.ManagementCluster(mgmt)
	if err != nil {
		return nil, err
	}
	at := fleet.pathOf(cluster) + ".providers"
	for i, p := range cluster.Providers {
		if p.Name == providerName && p.effectiveType() == providerType {
			return Set(src, itemPath(at, i)+".version", version)
		}
	}
	item := &yaml.Node{Kind: yaml.MappingNode}
	addField(item, "name", textNode(providerName))
	if providerType != ProviderInfrastructure {
		addField(item, "type", textNode(string(providerType)))
	}
	addField(item, "version", textNode(version))
	steps, err := yamledit.ParsePath(at)
	if err != nil {
		return nil, err
	}
	changed, err := yamledit.Append(src, 0, steps, item)
	if err != nil {
		return nil, diag.Wrap("add to "+at, err, "write it there yourself")
	}
	return changed, nil
}

// SetCertManagerVersion returns src, a fleet.yaml, with the version of cert-manager of a management cluster ("" if there is only one). All
// other bytes stay as they are. Errors are those of Set and of ManagementCluster.
func SetCertManagerVersion(src []byte, mgmt, version string) ([]byte, error) {
	fleet, err := Decode(FileName, src)
	if err != nil {
		return nil, err
	}
	cluster, err := fleet.ManagementCluster(mgmt)
	if err != nil {
		return nil, err
	}
	return Set(src, fleet.pathOf(cluster)+".certManager.version", version)
}

// pathOf is where a management cluster of the fleet stands in its file.
func (f *Fleet) pathOf(m *ManagementCluster) string {
	for i := range f.Spec.ManagementClusters {
		if &f.Spec.ManagementClusters[i] == m {
			return itemPath("spec.managementClusters", i)
		}
	}
	return ""
}

// textNode is s as any reader of YAML takes it for text: quoted where it looks like something else.
func textNode(s string) *yaml.Node {
	n := &yaml.Node{}
	if err := n.Encode(s); err != nil {
		n.SetString(s)
	}
	return n
}

func addField(mapping *yaml.Node, name string, value *yaml.Node) {
	mapping.Content = append(mapping.Content, textNode(name), value)
}
