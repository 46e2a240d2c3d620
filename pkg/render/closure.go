package render

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// closure is all that a build reads, gathered before kustomize runs. Kustomize then sees these files and nothing else: it can leave the
// repo neither by a path nor over the network, and no file of it is a bomb.
type closure struct {
	repo     *repo
	files    map[string][]byte
	visited  map[string]bool
	findings diag.Findings
	// openAPI says that a schema of somebody's own is read, which kustomize keeps for all builds of the process.
	openAPI bool
}

func newClosure(r *repo) *closure {
	return &closure{repo: r, files: map[string][]byte{}, visited: map[string]bool{}}
}

// kustomizationFile returns the kustomization.yaml of a folder, by any of its names, or "".
func (r *repo) kustomizationFile(dir string) string {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if file := path.Join(dir, name); r.isFile(file) {
			return file
		}
	}
	return ""
}

func (c *closure) problem(rule string, at place, summary, hint string) {
	c.findings = append(c.findings, diag.Finding{
		Severity: diag.SeverityError, Rule: rule, File: at.file, Line: at.line, Column: at.column, Summary: summary, Hint: hint,
	})
}

// place is where something is named.
type place struct {
	file         string
	line, column int
}

func placeOf(file string, n *yaml.Node) place { return place{file, n.Line, n.Column} }

// folder takes a kustomization and all that it names.
func (c *closure) folder(dir string, from place) {
	if c.visited[dir] {
		return
	}
	c.visited[dir] = true
	file := c.repo.kustomizationFile(dir)
	if file == "" {
		c.problem(RulePath, from, fmt.Sprintf("the folder %s has no kustomization.yaml", dir), "name its files, or add one")
		return
	}
	content := c.file(file, from)
	if content == nil {
		return
	}
	documents, err := yamledit.ParseWithin(content, Limits)
	if err != nil {
		c.findings = append(c.findings, syntaxFinding(RuleSyntax, file, content, err))
		return
	}
	for _, n := range documents {
		c.kustomization(file, n)
	}
}

// kustomization takes what the fields of a kustomization.yaml name.
func (c *closure) kustomization(file string, n *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		field, value := n.Content[i].Value, yamledit.Resolve(n.Content[i+1])
		switch field {
		case "resources", "bases", "components":
			c.each(value, func(item *yaml.Node) { c.named(file, item, item.Value, true) })
		case "crds", "configurations":
			c.each(value, func(item *yaml.Node) { c.named(file, item, item.Value, false) })
		case "generators", "transformers", "validators":
			c.each(value, func(item *yaml.Node) { c.plugin(file, item) })
		case "patches", "patchesJson6902", "replacements":
			c.each(value, func(item *yaml.Node) { c.field(file, item, "path") })
		case "openapi":
			c.openAPI = true
			c.field(file, value, "path")
		case "patchesStrategicMerge":
			c.each(value, func(item *yaml.Node) {
				if !strings.Contains(item.Value, "\n") {
					c.named(file, item, item.Value, false)
				}
			})
		case "configMapGenerator", "secretGenerator":
			c.each(value, func(item *yaml.Node) { c.generator(file, item) })
		case "helmCharts", "helmChartInflationGenerator", "helmGlobals":
			c.problem(RuleKustomize, placeOf(file, n.Content[i]), field+" is not available in Flux", "use a HelmRelease")
		}
	}
}

func (c *closure) each(list *yaml.Node, visit func(item *yaml.Node)) {
	if list.Kind != yaml.SequenceNode {
		return // kustomize says it better
	}
	for _, item := range list.Content {
		visit(yamledit.Resolve(item))
	}
}

func (c *closure) field(file string, n *yaml.Node, name string) {
	if value := yamledit.Lookup(n, name); value != nil && value.Value != "" {
		c.named(file, value, value.Value, false)
	}
}

// generator takes the files that a ConfigMap or Secret is made of.
func (c *closure) generator(file string, n *yaml.Node) {
	for _, name := range []string{"files", "envs"} {
		if list := yamledit.Lookup(n, name); list != nil {
			c.each(list, func(item *yaml.Node) {
				_, from, keyed := strings.Cut(item.Value, "=")
				if !keyed || name == "envs" {
					from = item.Value
				}
				c.named(file, item, from, false)
			})
		}
	}
	c.field(file, n, "env")
}

// plugin takes the configuration of a generator or transformer, which stands in place or in a file, and the files beside it, for it may
// name any of them.
func (c *closure) plugin(file string, item *yaml.Node) {
	text, dir := item.Value, path.Dir(file)
	if !strings.Contains(item.Value, "\n") {
		c.named(file, item, item.Value, true)
		clean, _ := inside(dir, item.Value)
		text, dir = string(c.files[clean]), path.Dir(clean)
	}
	for _, scheme := range []string{"http://", "https://"} {
		if strings.Contains(text, scheme) {
			c.remote(placeOf(file, item), item.Value)
			return
		}
	}
	for _, name := range c.repo.filesIn(dir) {
		c.file(name, placeOf(file, item))
	}
}

// named takes the file or folder that a kustomization.yaml names.
func (c *closure) named(file string, item *yaml.Node, name string, folders bool) {
	at := placeOf(file, item)
	if isRemote(name) {
		c.remote(at, name)
		return
	}
	clean, ok := inside(path.Dir(file), name)
	switch {
	case !ok:
		c.problem(RulePath, at, fmt.Sprintf("%q leads out of the fleet repo", name), "Flux sees only what is in the repo: bring it in")
	case folders && c.repo.isDir(clean):
		c.folder(clean, at)
	case c.repo.isFile(clean):
		c.file(clean, at)
	default:
		c.problem(RulePath, at, fmt.Sprintf("there is no %s in the repo", clean), "")
	}
}

func (c *closure) remote(at place, name string) {
	c.problem(RuleRemote, at, fmt.Sprintf("%.100q would have to be fetched from elsewhere", name), "copy it into the repo: what a fleet is made of is reviewed, and there when its origin is not")
}

// file takes one file, screened, and returns what is in it; nil where it cannot be read.
func (c *closure) file(name string, at place) []byte {
	if content, ok := c.files[name]; ok {
		return content
	}
	content, err := c.repo.read(name)
	if err != nil {
		c.problem(RulePath, at, fmt.Sprintf("%s: %s", name, why(err)), "")
		return nil
	}
	if findings := screenForKustomize(name, content); findings != nil {
		c.findings = append(c.findings, findings...)
		return nil
	}
	c.files[name] = content
	return content
}

// digest is of all files with their names.
func (c *closure) digest() key {
	var parts [][]byte
	names := make([]string, 0, len(c.files))
	for name := range c.files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		parts = append(parts, []byte(name), c.files[name])
	}
	return digest(parts...)
}

// isRemote says of what kustomize takes for a URL. What is left is a path, and has to be there.
func isRemote(name string) bool {
	lower := strings.ToLower(name)
	for _, start := range []string{"git::", "gh:", "git@", "github.com/", "github.com:"} {
		if strings.HasPrefix(lower, start) {
			return true
		}
	}
	return strings.Contains(lower, "://") || strings.Contains(lower, "?ref=") || strings.Contains(lower, ".git/") ||
		strings.HasSuffix(lower, ".git") || strings.Contains(lower, "_git/")
}

func isYAML(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}
