package render

import (
	"slices"

	"go.yaml.in/yaml/v3"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo/valuesschema"
)

// fileStride separates the lines of the files that a release has its values from: line 5 of the second file is line fileStride+5. No file
// has as many lines.
const fileStride = 1 << 28

// schemaFindings returns the schema's refusal as findings. They point at the values in the files of the HelmRelease and of its ConfigMaps,
// if these files have them.
func (j *job) schemaFindings(r *repo, c *chart.Chart, s *valuesschema.Schema, failed *valuesschema.Refusal) diag.Findings {
	called, files := "flavour "+c.Name(), []string{j.object.Source.File}
	if j.release.Outside != nil {
		called = "the chart " + c.Name()
	}
	node := &yaml.Node{Kind: yaml.MappingNode, Line: j.object.Source.Line}
	if c.IsRoot() {
		if own := documentAt(r, j.object.Source); own != nil {
			node = own
		}
		node, files = j.withConfigMaps(r, node, files)
	}
	findings := fleetrepo.ValueFindings("", node, called, s.Document, failed)
	for i := range findings {
		f := &findings[i]
		f.Rule, f.File, f.Line = RuleValues, files[f.Line/fileStride], f.Line%fileStride
	}
	return findings
}

// withConfigMaps returns the node of a HelmRelease with the values of its ConfigMaps below its own values, as helm-controller merges them.
// The lines of the values tell which file each value is from. The node stays as it is if it has no ConfigMaps with values in the repo.
func (j *job) withConfigMaps(r *repo, release *yaml.Node, files []string) (*yaml.Node, []string) {
	var values *yaml.Node
	for _, from := range j.spec.Spec.ValuesFrom {
		if from.Kind == "Secret" || from.TargetPath != "" {
			continue
		}
		found, ok := j.configMap(from.Name)
		if !ok {
			continue
		}
		if inner := valuesIn(r, found, from.GetValuesKey()); inner != nil {
			shift(inner, len(files)*fileStride)
			files, values = append(files, found.source.File), overlay(values, inner)
		}
	}
	if values == nil {
		return release, files
	}
	values = overlay(values, yamledit.Find(release, "spec", "values"))
	text := func(s string) *yaml.Node {
		return &yaml.Node{Kind: yaml.ScalarNode, Value: s, Line: j.object.Source.Line}
	}
	mapping := func(name string, value *yaml.Node) *yaml.Node {
		return &yaml.Node{Kind: yaml.MappingNode, Line: j.object.Source.Line, Content: []*yaml.Node{text(name), value}}
	}
	return mapping("spec", mapping("values", values)), files
}

// valuesIn returns the values in a ConfigMap of the repo with their lines there. It returns nil if the file has other text than the
// ConfigMap, because a patch or a variable changes it, and if the text is not written line by line.
func valuesIn(r *repo, from configMap, key string) *yaml.Node {
	says := yamledit.Find(documentAt(r, from.source), "data", key)
	if says == nil || says.Style&yaml.LiteralStyle == 0 || says.Value != from.data[key] {
		return nil
	}
	documents, err := yamledit.ParseWithin([]byte(says.Value), Limits)
	if err != nil || len(documents) != 1 {
		return nil
	}
	inner := documents[0]
	if inner.Kind == yaml.DocumentNode && len(inner.Content) == 1 {
		inner = inner.Content[0]
	}
	if inner.Kind != yaml.MappingNode {
		return nil
	}
	shift(inner, says.Line)
	indent(inner)
	return inner
}

// indent drops the columns of nodes. They count from the beginning of the text of a field, and not from the beginning of the file's line.
func indent(n *yaml.Node) {
	n.Column = 0
	for _, inner := range n.Content {
		indent(inner)
	}
}

// documentAt returns the document that begins at a line of a file, with its lines there, or nil.
func documentAt(r *repo, at Source) *yaml.Node {
	src, err := r.read(at.File)
	if err != nil {
		return nil
	}
	for _, d := range split(src) {
		if line, ok := d.start(); !ok || line != at.Line {
			continue
		}
		if documents, err := yamledit.ParseWithin(d.text, Limits); err == nil && len(documents) == 1 {
			shift(documents[0], d.line-1)
			return documents[0]
		}
	}
	return nil
}

// overlay returns the values below with those of above on top. Either may be nil.
func overlay(below, above *yaml.Node) *yaml.Node {
	above = yamledit.Resolve(above)
	switch {
	case above == nil:
		return below
	case below == nil || below.Kind != yaml.MappingNode || above.Kind != yaml.MappingNode:
		return above
	}
	out := *below
	out.Content = slices.Clone(below.Content)
	there := map[string]int{}
	for i := 0; i+1 < len(out.Content); i += 2 {
		there[out.Content[i].Value] = i
	}
	for i := 0; i+1 < len(above.Content); i += 2 {
		name, value := above.Content[i], above.Content[i+1]
		at, ok := there[name.Value]
		if !ok {
			out.Content = append(out.Content, name, value)
			continue
		}
		out.Content[at], out.Content[at+1] = name, overlay(out.Content[at+1], value)
	}
	return &out
}

// shift moves the lines of nodes. It moves each node once, even if several aliases lead to it.
func shift(n *yaml.Node, lines int) {
	n.Line += lines
	for _, inner := range n.Content {
		shift(inner, lines)
	}
}
