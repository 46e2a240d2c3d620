package v1alpha1

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
)

// section describes one field of spec for a new fleet.yaml: a comment, and an example for a fleet that does not set the field.
type section struct {
	field, comment, example string
}

var sections = [...]section{
	{
		"git",
		`Where the fleet repo is. Without a url it is the folder of this file, which fleetctl serves to Flux from this machine.`,
		`git:
  url: https://git.example.org/platform/fleet.git
  branch: main`,
	},
	{
		"flux",
		"Components of Flux on the management clusters.",
		`flux:
  version: v2.9.5
  components: [source-controller, kustomize-controller, helm-controller, notification-controller]`,
	},
	{
		"channels",
		`Git references that environments follow. The channel main is the branch of the fleet repo; fleetctl promote moves a channel of tags.`,
		`channels:
  - name: release
    tag: v*`,
	},
	{
		"environments",
		"Groups of workload clusters that change together; each has a folder of its own.",
		`environments:
  - name: staging`,
	},
	{
		"notifications",
		`Receivers of messages about Flux: Slack, Teams, a webhook, or the status of commits at the forge. fleetctl notification add writes them.`,
		`notifications:
  - name: ops
    type: slack`,
	},
	{
		"snapshots",
		`Where fleetctl backup and bootstrap keep encrypted snapshots of a management cluster for fleetctl restore: a folder that outlives it.`,
		`snapshots:
  to: /mnt/snapshots`,
	},
	{
		"validate",
		`CRDs of this repo that fleetctl validate prefers to others, and files that it does not check.`,
		`validate:
  crds: [hack/crds]
  exclude: [hack]`,
	},
	{
		"releases",
		`How commits are named, and whether fleetctl promote also makes a release at the forge for each tag.`,
		`releases:
  commits: conventional
  forge: true`,
	},
	{
		"managementClusters",
		`The clusters that run Cluster API and Flux. fleetctl adds the core provider and the kubeadm providers if they are not
listed. fleetctl init writes missing versions here. To upgrade, change a version here.`,
		"",
	},
	{standbysField, `Clusters that can take over from a lost management cluster. fleetctl standby add writes them.`, ""},
}

const standbysField = "standbys"

// Marshal encodes f as a new fleet.yaml. It adds comments for the people who edit the file, and examples instead of the fields that f
// leaves empty. Decode returns the same fleet, or reports the mistakes in f. The error is one of encoding.
func Marshal(f *Fleet) ([]byte, error) {
	var b strings.Builder
	fmt.Fprintf(&b, `# This file declares the fleet: its Git repository, its management clusters and what is installed on them.
# fleetctl reads it strictly; each field is described in its reference, docs/reference/fleet.yaml.md.
apiVersion: %s
kind: %s
`, APIVersion, Kind)
	if err := writeField(&b, "metadata", reflect.ValueOf(f.Metadata), 0); err != nil {
		return nil, err
	}
	b.WriteString("spec:\n")
	spec := reflect.ValueOf(f.Spec)
	index, _ := fieldsOf(spec.Type())
	for i, s := range sections {
		if s.field == standbysField && len(f.Spec.Standbys) == 0 {
			continue // few fleets have standbys
		}
		if i > 0 {
			b.WriteString("\n")
		}
		writeComment(&b, s.comment)
		value := spec.Field(index[s.field])
		if isEmpty(value) && s.example != "" {
			writeComment(&b, s.example)
			continue
		}
		if err := writeField(&b, s.field, value, 2); err != nil {
			return nil, err
		}
	}
	return []byte(b.String()), nil
}

// writeComment writes text as comment lines with the indentation of spec.
func writeComment(b *strings.Builder, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString("  # " + line + "\n")
	}
}

// writeField writes one field with its value.
func writeField(b *strings.Builder, name string, value reflect.Value, indent int) error {
	field := &yaml.Node{Kind: yaml.MappingNode}
	addField(field, name, nodeOf(value))
	lines, err := yamledit.Lines(field, indent)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	b.WriteString(strings.Join(lines, "\n") + "\n")
	return nil
}

// Node returns a value of this package's types as YAML, as Marshal writes it. Use it to add an item to a fleet.yaml.
func Node(value any) *yaml.Node { return nodeOf(reflect.ValueOf(value)) }

// nodeOf returns a value of this package's types as YAML. Fields have the order of their declaration. Empty optional fields are left out.
func nodeOf(v reflect.Value) *yaml.Node {
	switch v.Kind() {
	case reflect.Pointer:
		return nodeOf(v.Elem())
	case reflect.Struct:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if name := fieldName(f); name != "" && (isRequired(f) || !isEmpty(v.Field(i))) {
				addField(n, name, nodeOf(v.Field(i)))
			}
		}
		return n
	case reflect.Slice:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			n.Content = append(n.Content, nodeOf(v.Index(i)))
		}
		return n
	case reflect.Map:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, key := range slices.SortedFunc(slices.Values(v.MapKeys()),
			func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) }) {
			addField(n, key.String(), nodeOf(v.MapIndex(key)))
		}
		return n
	case reflect.Int:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(v.Int(), 10)}
	case reflect.Bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v.Bool())}
	default: // text; TestDecodeKnowsAllTypes ensures that there are no other kinds
		return textNode(v.String())
	}
}
