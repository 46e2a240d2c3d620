package v1alpha1

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Set returns src with another text value at path, such as spec.flux.version or spec.managementClusters[1].providers[0].version. It adds
// missing fields, but no list items. All other bytes stay as they are: comments, order, quotes and line ends. The error says that src is
// not valid YAML, that path does not lead to a text value, or is yamledit.ErrCannotEdit.
func Set(src []byte, path, value string) ([]byte, error) {
	steps, err := yamledit.ParsePath(path)
	if err != nil {
		return nil, err
	}
	if !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) {
		return nil, fmt.Errorf("set %s: the value contains a line end or a control character", path)
	}
	if _, finding := parse(src); finding != nil {
		return nil, diag.Findings{*finding}
	}
	changed, err := yamledit.Set(src, 0, steps, value)
	if err != nil {
		return nil, diag.Wrap("set "+path, err, fmt.Sprintf("write it into the file yourself: %s", value))
	}
	return changed, nil
}

// SetProviderVersion returns src, a fleet.yaml, with another version of a provider of the management cluster mgmt, which may be "" if there
// is only one. It adds a provider that is not listed. All other bytes stay as they are. The error is one of Decode, ManagementCluster or
// Set.
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
	if i := cluster.provider(providerType, providerName); i >= 0 {
		return Set(src, itemPath(at, i)+".version", version)
	}
	item := &yaml.Node{Kind: yaml.MappingNode}
	addField(item, "name", textNode(providerName))
	if providerType != ProviderInfrastructure {
		addField(item, "type", textNode(string(providerType)))
	}
	addField(item, "version", textNode(version))
	return appendItem(src, at, item)
}

// SetVariableValue returns src, a fleet.yaml, with a value in clear for a variable of a provider of the management cluster mgmt, which may
// be "" if there is only one. The value replaces the variable's source. It adds the variable if the provider does not list it. All other
// bytes stay as they are. It is an error if fleet.yaml does not list the provider. The other errors are those of Decode, ManagementCluster
// and Set.
func SetVariableValue(src []byte, mgmt string, providerType ProviderType, providerName, variable, value string) ([]byte, error) {
	fleet, err := Decode(FileName, src)
	if err != nil {
		return nil, err
	}
	cluster, err := fleet.ManagementCluster(mgmt)
	if err != nil {
		return nil, err
	}
	i := cluster.provider(providerType, providerName)
	if i < 0 {
		return nil, diag.Errorf("write it into the file yourself", "%s does not list the provider %s", FileName, providerName)
	}
	at := itemPath(fleet.pathOf(cluster)+".providers", i) + ".variables"
	there := cluster.Providers[i].Variables
	j := slices.IndexFunc(there, func(v Variable) bool { return v.Name == variable })
	if j < 0 {
		item := &yaml.Node{Kind: yaml.MappingNode}
		addField(item, "name", textNode(variable))
		addField(item, "value", textNode(value))
		return appendItem(src, at, item)
	}
	at = itemPath(at, j)
	changed, err := Set(src, at+".value", value)
	for _, source := range []string{"env", "file", "stdin", "command", "vault", "base64"} {
		if err != nil {
			return nil, err
		}
		changed, err = removeAt(changed, at+"."+source)
	}
	return changed, err
}

// provider returns the index of a provider of m, or -1.
func (m *ManagementCluster) provider(providerType ProviderType, name string) int {
	return slices.IndexFunc(m.Providers, func(p Provider) bool { return p.Name == name && p.effectiveType() == providerType })
}

func removeAt(src []byte, path string) ([]byte, error) {
	steps, err := yamledit.ParsePath(path)
	if err != nil {
		return nil, err
	}
	changed, err := yamledit.Remove(src, 0, steps)
	return changed, diag.Wrap("remove "+path, err, "remove it from the file yourself")
}

func appendItem(src []byte, at string, item *yaml.Node) ([]byte, error) {
	steps, err := yamledit.ParsePath(at)
	if err != nil {
		return nil, err
	}
	changed, err := yamledit.Append(src, 0, steps, item)
	return changed, diag.Wrap("add to "+at, err, "write it into the file yourself")
}

// SetCertManagerVersion returns src, a fleet.yaml, with another version of cert-manager for the management cluster mgmt, which may be "" if
// there is only one. All other bytes stay as they are. The error is one of Decode, ManagementCluster or Set.
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

// pathOf returns the path of a management cluster in fleet.yaml.
func (f *Fleet) pathOf(m *ManagementCluster) string {
	for i := range f.Spec.ManagementClusters {
		if &f.Spec.ManagementClusters[i] == m {
			return itemPath("spec.managementClusters", i)
		}
	}
	return ""
}

// textNode returns s as a YAML node that every parser reads as text: with quotes if s looks like a number or the like.
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
