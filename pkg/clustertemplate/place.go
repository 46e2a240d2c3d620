package clustertemplate

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
)

// document is one of the template's, with tokens for its variables.
type document struct {
	text string
	// line of the template that it begins at.
	line       int
	node       *yaml.Node
	kind, name string
	group      string
	// plains are scalars that are written anew.
	plains []scalar
}

// scalar is a plain one on one line that holds variables.
type scalar struct {
	line, column int // in the document, from 1; the column counts characters
	text         string
	parts        []int
	key          bool
}

// separator begins a document.
var separator = regexp.MustCompile(`^---(\s|$)`)

// documents are those of the template that the chart takes over.
func (t *translation) documents() []*document {
	var all []*document
	begin := 0
	lines := strings.SplitAfter(t.text, "\n")
	take := func(end int) {
		d := &document{text: strings.Join(lines[begin:end], ""), line: begin + 1}
		begin = end + 1
		if t.open(d, len(all)+1) {
			all = append(all, d)
		}
	}
	for i, line := range lines {
		if separator.MatchString(line) {
			if rest := strings.TrimSpace(line[3:]); rest != "" && !strings.HasPrefix(rest, "#") {
				t.fault(i+1, "begin the document on the next line", "there is something beside ---")
			}
			take(i)
		}
	}
	take(len(lines))
	if len(all) == 0 && len(t.findings) == 0 {
		t.fault(1, "", "the template has no objects")
	}
	return all
}

// open reads a document, and tells whether the chart has it.
func (t *translation) open(d *document, number int) bool {
	nodes, err := yamledit.Parse([]byte(d.text))
	if err != nil {
		line, _, message := yamledit.Place([]byte(d.text), err)
		t.fault(d.line+max(line, 1)-1, "it has to be YAML with a word in the place of each variable", "this is no YAML: %s", t.original(message))
		return false
	}
	if len(nodes) == 0 || nodes[0].Kind == yaml.ScalarNode && nodes[0].Tag == "!!null" {
		return false
	}
	d.node = nodes[0]
	version := scalarText(yamledit.Find(d.node, "apiVersion"))
	d.kind, d.name = scalarText(yamledit.Find(d.node, "kind")), scalarText(yamledit.Find(d.node, "metadata", "name"))
	d.group, _, _ = strings.Cut(version, "/")
	switch {
	case len(nodes) > 1 || d.node.Kind != yaml.MappingNode || version == "" || d.kind == "":
		t.fault(d.line+d.node.Line-1, "each document is an object of Kubernetes, with apiVersion and kind", "this is no object of Kubernetes")
		return false
	case version == "v1" && d.kind == "List":
		t.fault(d.line+d.node.Line-1, "write its items as documents of their own, with --- between them", "a chart takes objects one by one, no List")
		return false
	case version == "v1" && d.kind == "Secret":
		t.secrets = append(t.secrets, Secret{Name: t.original(d.name), Line: d.line + d.node.Line - 1})
		return false
	}
	t.place(d, number, d.node, "", false, false)
	t.misplaced(d, number)
	return true
}

func scalarText(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// place finds out what the variables of a document stand in.
func (t *translation) place(d *document, number int, n *yaml.Node, field string, flow, key bool) {
	switch n.Kind {
	case yaml.MappingNode:
		flow = flow || n.Style&yaml.FlowStyle != 0
		for i := 0; i+1 < len(n.Content); i += 2 {
			t.place(d, number, n.Content[i], "", flow, true)
			t.place(d, number, n.Content[i+1], n.Content[i].Value, flow, false)
		}
	case yaml.SequenceNode, yaml.DocumentNode:
		flow = flow || n.Style&yaml.FlowStyle != 0
		for _, inner := range n.Content {
			t.place(d, number, inner, field, flow, false)
		}
	case yaml.ScalarNode:
		t.placeScalar(d, number, n, field, flow, key)
	}
}

func (t *translation) placeScalar(d *document, number int, n *yaml.Node, field string, flow, key bool) {
	found := t.partsOf(n.Value)
	if len(found) == 0 {
		return
	}
	at := inPlain
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		at = inDoubleQuotes
	case n.Style&yaml.SingleQuotedStyle != 0:
		at = inSingleQuotes
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		at = inBlock
	case !beginsAt(d.text, n):
		at = inLines
	}
	for _, i := range found {
		u := t.parts[i].use
		u.at, u.field, u.flow, u.document = at, field, flow, number
		u.whole = at == inPlain && !key && n.Value == t.tokenOf(i)
		if at == inBlock {
			u.indent = indentOf(d.text, t.tokenOf(i))
		}
	}
	if at == inPlain {
		d.plains = append(d.plains, scalar{line: n.Line, column: n.Column, text: n.Value, parts: found, key: key})
	}
}

// beginsAt tells whether a scalar stands at its place as it is: on one line, without a tag or an anchor.
func beginsAt(text string, n *yaml.Node) bool {
	lines := strings.Split(text, "\n")
	if n.Line < 1 || n.Line > len(lines) {
		return false
	}
	line := []rune(lines[n.Line-1])
	return n.Column >= 1 && n.Column <= len(line) && strings.HasPrefix(string(line[n.Column-1:]), n.Value)
}

// indentOf is the indentation of the line that a token stands in.
func indentOf(text, token string) int {
	before, _, _ := strings.Cut(text, token)
	line := before[strings.LastIndexByte(before, '\n')+1:]
	return len(line) - len(strings.TrimLeft(line, " "))
}

// partsOf are the variables whose tokens are in a text.
func (t *translation) partsOf(text string) []int {
	var all []int
	for _, m := range t.tokenPattern().FindAllStringSubmatch(text, -1) {
		if i, err := strconv.Atoi(m[1]); err == nil {
			all = append(all, i)
		}
	}
	return all
}

func (t *translation) tokenPattern() *regexp.Regexp {
	return regexp.MustCompile(t.token + `([0-9]+)x`)
}

// original writes a text with tokens as the template has it.
func (t *translation) original(text string) string {
	return t.tokenPattern().ReplaceAllStringFunc(text, func(token string) string {
		i := t.partsOf(token)
		return source(t.parts[i[0]].use.node)
	})
}

// misplaced finds variables that are neither in a value nor in a comment: in an anchor, or a tag.
func (t *translation) misplaced(d *document, number int) {
	for i, line := range strings.Split(d.text, "\n") {
		for _, m := range t.tokenPattern().FindAllStringIndex(line, -1) {
			part := t.partsOf(line[m[0]:m[1]])[0]
			if u := t.parts[part].use; u.document != number && !strings.Contains(line[:m[0]], "#") {
				t.fault(d.line+i, "write it out", "%s stands where YAML has no value: in a tag or an anchor", source(u.node))
			}
		}
	}
}

// clusterGroup is the API group of clusters.
const clusterGroup = "cluster.x-k8s.io"

// checkCluster makes sure that the template makes one Cluster, called as its release.
func (t *translation) checkCluster(documents []*document) {
	var clusters []*document
	for _, d := range documents {
		if d.kind == "Cluster" && d.group == clusterGroup {
			clusters = append(clusters, d)
		}
	}
	switch len(clusters) {
	case 0:
		t.fault(1, "give the template of a cluster, as `clusterctl generate cluster` takes it", "the template has no Cluster of %s", clusterGroup)
		return
	case 1:
	default:
		t.fault(clusters[1].line, "make a chart of each", "the template has %d Clusters: a chart makes one", len(clusters))
		return
	}
	d := clusters[0]
	line := func(path ...any) int { return d.line + yamledit.Nearest(d.node, path...).Line - 1 }
	if parts := t.partsOf(d.name); len(parts) != 1 || d.name != t.tokenOf(parts[0]) || t.parts[parts[0]].use.node.Param != clusterName {
		t.fault(line("metadata", "name"), "write metadata.name: ${CLUSTER_NAME}", "the Cluster is called %s: a cluster of the fleet gives it its name", t.original(d.name))
	}
	if namespace := scalarText(yamledit.Find(d.node, "metadata", "namespace")); namespace != "" && len(t.partsOf(namespace)) == 0 {
		t.fault(line("metadata", "namespace"), "leave it out, or write ${NAMESPACE}", "the Cluster is in the namespace %s: each cluster of the fleet has its own", namespace)
	}
}

// choosePool makes a pool of the nodes that clusterctl knows as workers, where one object has all of them.
func (t *translation) choosePool(documents []*document) {
	v := t.variable(workerCount)
	if v == nil {
		return
	}
	uses := v.placed()
	if len(uses) != 1 || !uses[0].whole || uses[0].field != "replicas" || uses[0].outer != nil {
		return
	}
	d := documents[uses[0].document-1]
	if d.group != clusterGroup || d.kind != "MachineDeployment" && d.kind != "MachinePool" {
		return
	}
	t.pool = "workers"
	if parts := t.partsOf(d.name); len(parts) == 1 && t.parts[parts[0]].use.node.Param == clusterName {
		if name, ok := strings.CutPrefix(d.name, t.tokenOf(parts[0])+"-"); ok && poolName.MatchString(name) {
			t.pool = name
		}
	}
}

var poolName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// placed are the uses that the chart has.
func (v *variable) placed() []*use {
	return slices.DeleteFunc(slices.Clone(v.uses), func(u *use) bool {
		for u.outer != nil {
			u = u.outer
		}
		return u.document == 0
	})
}

// rewrite puts a token of its own in the place of each scalar that is written anew.
func (t *translation) rewrite(d *document) string {
	lines := strings.Split(d.text, "\n")
	slices.SortFunc(d.plains, func(a, b scalar) int { return b.column - a.column }) // from the right
	for _, s := range d.plains {
		line := []rune(lines[s.line-1])
		after := string(line[s.column-1+len([]rune(s.text)):])
		lines[s.line-1] = string(line[:s.column-1]) + fmt.Sprintf("%ss%dx", t.token, len(t.whole)) + after
		t.whole = append(t.whole, s)
	}
	return strings.Join(lines, "\n")
}
