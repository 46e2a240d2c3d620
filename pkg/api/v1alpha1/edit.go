package v1alpha1

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// ErrCannotEdit is in the error of Set and SetProviderVersion where a file is written in a way that only its author can
// change without harm: through aliases, or with the value over several lines.
var ErrCannotEdit = errors.New("cannot edit this file without rewriting it")

// Set returns src with the text value at path, such as spec.flux.version or spec.managementClusters[0].providers[1].version,
// changed or added. All other bytes stay as they are: comments, order, quotes, line ends. Fields on the way that are missing are
// added, list items are not. Errors are those of the YAML syntax, a path that does not lead to a text value, or ErrCannotEdit.
func Set(src []byte, path, value string) ([]byte, error) {
	steps, err := splitPath(path)
	if err != nil {
		return nil, err
	}
	if !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) {
		return nil, fmt.Errorf("set %s: value holds a line end or another character that is not text", path)
	}
	root, finding := parse(src)
	if finding != nil {
		return nil, diag.Findings{*finding}
	}
	e := newEditor(src)
	changed, err := e.set(root, steps, textNode(value))
	if err == nil {
		err = proveOnly(src, changed, steps, value)
	}
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
	at := ""
	for i := range fleet.Spec.ManagementClusters {
		if &fleet.Spec.ManagementClusters[i] == cluster {
			at = itemPath("spec.managementClusters", i) + ".providers"
		}
	}
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
	return appendItem(src, at, item)
}

// appendItem adds item to the end of the list at path, or makes the list.
func appendItem(src []byte, path string, item *yaml.Node) ([]byte, error) {
	steps, err := splitPath(path)
	if err != nil {
		return nil, err
	}
	root, finding := parse(src)
	if finding != nil {
		return nil, diag.Findings{*finding}
	}
	var wanted any
	if err := item.Decode(&wanted); err != nil {
		return nil, err
	}
	e := newEditor(src)
	list, rest, err := walk(root, steps)
	var changed []byte
	switch {
	case err != nil:
	case len(rest) == 0 && list.Kind == yaml.SequenceNode:
		changed, err = e.appendToList(list, item)
		wanted = append(asList(list), wanted)
	case len(rest) == 0 && !isNull(list):
		err = fmt.Errorf("expected a list, found %s", describe(list))
	default:
		wanted = []any{wanted}
		changed, err = e.set(root, steps, &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{item}})
	}
	if err == nil {
		err = proveOnly(src, changed, steps, wanted)
	}
	if err != nil {
		return nil, diag.Wrap("add to "+path, err, "write it there yourself")
	}
	return changed, nil
}

// asList is what a sequence holds, or nil where that cannot be told; the proof fails then.
func asList(sequence *yaml.Node) []any {
	var items []any
	if err := sequence.Decode(&items); err != nil {
		return nil
	}
	return items
}

// proveOnly checks that changed means what src means, but for wanted at the place that steps lead to.
func proveOnly(src, changed []byte, steps []step, wanted any) error {
	var before, after any
	if err := yaml.Unmarshal(src, &before); err != nil {
		return fmt.Errorf("%w: %w", ErrCannotEdit, err)
	}
	if err := yaml.Unmarshal(changed, &after); err != nil {
		return fmt.Errorf("%w: %w", ErrCannotEdit, err)
	}
	if !reflect.DeepEqual(withValue(before, steps, wanted), after) {
		return ErrCannotEdit
	}
	return nil
}

// withValue returns a copy of doc with value where steps lead.
func withValue(doc any, steps []step, value any) any {
	if len(steps) == 0 {
		return value
	}
	s := steps[0]
	if s.isIndex() {
		old, _ := doc.([]any)
		list := slices.Clone(old)
		if s.index < len(list) {
			list[s.index] = withValue(list[s.index], steps[1:], value)
		}
		return list
	}
	fields := map[string]any{}
	if old, ok := doc.(map[string]any); ok {
		maps.Copy(fields, old)
	}
	fields[s.field] = withValue(fields[s.field], steps[1:], value)
	return fields
}

// step leads from a node to one inside of it: to a field, or, where there is no field, to an item.
type step struct {
	field string
	index int
}

func (s step) isIndex() bool { return s.field == "" }

// splitPath takes a[0].b apart into "a", 0, "b".
func splitPath(path string) ([]step, error) {
	var steps []step
	for part := range strings.SplitSeq(path, ".") {
		name, indexes, _ := strings.Cut(part, "[")
		if name == "" {
			return nil, fmt.Errorf("path %q has an empty field", path)
		}
		steps = append(steps, step{field: name})
		for indexes != "" {
			index, more, ok := strings.Cut(indexes, "]")
			i, err := strconv.Atoi(index)
			if !ok || err != nil || i < 0 || more != "" && more[0] != '[' {
				return nil, fmt.Errorf("path %q has a bad index", path)
			}
			steps, indexes = append(steps, step{index: i}), strings.TrimPrefix(more, "[")
		}
	}
	return steps, nil
}

// walk follows steps from n as far as there are nodes, and returns the last one with the steps that remain: fields only.
func walk(n *yaml.Node, steps []step) (*yaml.Node, []step, error) {
	for i, s := range steps {
		if n.Kind == yaml.AliasNode {
			return nil, nil, fmt.Errorf("%w: line %d is an alias", ErrCannotEdit, n.Line)
		}
		if s.isIndex() {
			if n.Kind != yaml.SequenceNode || s.index >= len(n.Content) {
				return nil, nil, fmt.Errorf("there is no item %d in line %d", s.index, n.Line)
			}
			n = n.Content[s.index]
			continue
		}
		if n.Kind != yaml.MappingNode && !isNull(n) {
			return nil, nil, fmt.Errorf("expected fields in line %d, found %s", n.Line, describe(n))
		}
		next := lookup(n, s.field)
		if next == nil {
			return n, steps[i:], onlyFields(steps[i:])
		}
		n = next
	}
	return n, nil, nil
}

func onlyFields(steps []step) error {
	for _, s := range steps {
		if s.isIndex() {
			return fmt.Errorf("there is no item %d", s.index)
		}
	}
	return nil
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
