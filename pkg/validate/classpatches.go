package validate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
	"github.com/fleetctl/fleetctl/pkg/validate/schema"
)

// checkClassPatches reports changes of a ClusterClass to fields that its templates cannot have, or that are not there yet. Cluster API
// makes them when it makes a Cluster of the class, and then fails: see applyPatchToRequest in Cluster API's patches/engine.go.
func checkClassPatches(ctx context.Context, s *schemas, classes, all []*object) (findings diag.Findings) {
	there := referable(all, func(o *object) bool { return strings.HasSuffix(o.Kind, "Template") })
	for _, o := range classes {
		if o.Kind != "ClusterClass" || groupOf(o) != clusterGroup || o.content != nil {
			continue
		}
		var content mapping.Fields
		_ = kjson.Unmarshal(o.JSON, &content) // it was read before
		p := &classPatches{
			class: o, schemas: s, there: there, spec: content.In("spec"), made: map[*object]map[string]bool{},
			contents: map[*object]map[string]any{},
		}
		p.defaults(ctx)
		for i, patch := range p.spec.List("patches") {
			p.open = p.open || patch["external"] != nil
			p.patch(ctx, fmt.Sprintf("spec.patches[%d]", i), patch)
		}
		findings = append(findings, p.findings...)
	}
	return findings
}

// classPatches judges the changes of one ClusterClass, in their order.
type classPatches struct {
	class   *object
	schemas *schemas
	there   map[known]*object
	spec    mapping.Fields
	// made are the paths that earlier changes set in a template. contents are the templates with their defaults.
	made     map[*object]map[string]bool
	contents map[*object]map[string]any
	// open: a runtime extension changes the templates before.
	open     bool
	findings diag.Findings
}

// defaults reports defaults of variables that their own schemas do not accept. The webhook of Cluster API refuses such a class.
func (c *classPatches) defaults(ctx context.Context) {
	for i, declared := range c.spec.List("variables") {
		form := maps.Clone(declared.In("schema", "openAPIV3Schema"))
		value, has := form["default"]
		text, err := json.Marshal(form)
		if !has || err != nil || bytes.Contains(text, []byte("${")) {
			continue
		}
		delete(form, "default")
		values, err := schema.NewValue(form)
		if err != nil {
			continue
		}
		problems, err := values.Check(ctx, value)
		if err != nil {
			continue // the schema is unusable
		}
		for _, wrong := range problems {
			c.findings = append(c.findings, c.class.at(fmt.Sprintf("spec.variables[%d].schema.openAPIV3Schema.default", i), RuleRefused,
				"its own schema does not take it: "+wrong.Summary, cmp.Or(wrong.Hint, "give it a value that the schema takes")))
		}
	}
}

// patch judges the changes of one patch.
func (c *classPatches) patch(ctx context.Context, at string, patch mapping.Fields) {
	for i, definition := range patch.List("definitions") {
		selector := definition.In("selector")
		gvk := kschema.FromAPIVersionAndKind(selector.Text("apiVersion"), selector.Text("kind"))
		templates := c.selected(selector)
		for j, change := range definition.List("jsonPatches") {
			path := change.Text("path")
			if !strings.HasPrefix(path, "/spec/") || strings.Contains(path, "${") {
				continue
			}
			field := fmt.Sprintf("%s.definitions[%d].jsonPatches[%d].path", at, i, j)
			steps := pointerSteps(path)
			if wrong, lacks := c.schemas.LacksField(ctx, gvk, steps); lacks && strings.HasSuffix(gvk.Kind, "Template") {
				c.findings = append(c.findings, c.class.at(field, RuleUnknownField,
					fmt.Sprintf("a %.80s has no such field: %.200s", gvk.Kind, wrong.Path), wrong.Hint))
				continue
			}
			for _, template := range templates {
				if c.change(ctx, template, field, change.Text("op"), path, patch.Text("enabledIf") != "") {
					break
				}
			}
			for _, template := range templates {
				if c.made[template] == nil {
					c.made[template] = map[string]bool{}
				}
				c.made[template][strings.TrimSuffix(path, "/-")] = true
			}
		}
	}
}

// change reports a change that fails in a template. sometimes says that the patch has a condition.
func (c *classPatches) change(ctx context.Context, template *object, field, op, path string, sometimes bool) (told bool) {
	if c.open || c.isMade(template, path) {
		return false
	}
	content := c.read(ctx, template)
	steps := pointerSteps(path)
	missing, is := firstMissing(content, steps)
	if content == nil || !is || op == "add" && missing == len(steps)-1 || !staysAsWritten(template, steps, missing) {
		return false
	}
	hint := "add it to the template, or let an earlier patch add it"
	if op == "add" {
		hint = "let the patch add " + "/" + strings.Join(steps[:missing+1], "/") + " as a whole, or add it to the template"
	}
	f := c.class.at(field, RuleRefused, fmt.Sprintf("the %s %.80s has no /%.200s, so the patch fails", template.Kind, template.Name,
		strings.Join(steps[:missing+1], "/")), hint)
	if sometimes {
		f.Severity = diag.SeverityWarning
	}
	c.findings = append(c.findings, f)
	return true
}

// isMade tells whether an earlier change made a path of a template, or something around it.
func (c *classPatches) isMade(template *object, path string) bool {
	for path != "" {
		if c.made[template][path] {
			return true
		}
		path = path[:strings.LastIndexByte(path, '/')]
	}
	return false
}

// read returns a template with its defaults; nil if Flux fills in a part of it.
func (c *classPatches) read(ctx context.Context, template *object) map[string]any {
	content, is := c.contents[template]
	if !is {
		if !strings.Contains(string(template.JSON), "${") {
			_ = kjson.Unmarshal(template.JSON, &content) // it was read before
			content = c.schemas.Defaulted(ctx, content)
		}
		c.contents[template] = content
	}
	return content
}

// pointerSteps are the steps of a JSON pointer.
func pointerSteps(path string) []string {
	steps := strings.Split(strings.TrimPrefix(path, "/"), "/")
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for i, step := range steps {
		steps[i] = unescape.Replace(step)
	}
	return steps
}

// firstMissing returns the index of the first step that leads nowhere, and false if all lead somewhere, or if the last step is a place for
// a new item of a list that is there.
func firstMissing(content map[string]any, steps []string) (missing int, is bool) {
	var at any = content
	for i, step := range steps {
		switch value := at.(type) {
		case map[string]any:
			next, has := value[step]
			if !has || next == nil && i < len(steps)-1 {
				return i, true
			}
			at = next
		case []any:
			n, err := strconv.Atoi(step)
			if i == len(steps)-1 && (step == "-" || err == nil && n <= len(value)) {
				return 0, false
			}
			if err != nil || n >= len(value) {
				return i, true
			}
			at = value[n]
		default:
			return i, true
		}
	}
	return 0, false
}

// staysAsWritten tells whether no webhook adds the missing field of a template. Those of vSphere and of kubeadm's v1beta2 add none. In
// v1beta1, kubeadm's wrote all fields that are neither pointers nor lists. Of the templates of others nobody knows.
func staysAsWritten(template *object, steps []string, missing int) bool {
	version := template.gvk().Version
	switch {
	case template.Kind == "VSphereMachineTemplate" || template.Kind == "VSphereClusterTemplate":
		return groupOf(template) == "infrastructure."+clusterGroup
	case template.Kind != kubeadmTemplate && template.Kind != "KubeadmConfigTemplate":
		return false
	case version == "v1beta2":
		return true
	}
	step := steps[missing]
	isItem := missing+1 < len(steps) && (steps[missing+1] == "-" || strings.Trim(steps[missing+1], "0123456789") == "")
	pointers := []string{"clusterConfiguration", "initConfiguration", "joinConfiguration"}
	return isItem || slices.Contains(pointers, step) && missing < len(steps)-1
}

// selected returns the templates of the class that a selector selects, and that the repo has.
func (c *classPatches) selected(selector mapping.Fields) (out []*object) {
	resources := selector.In("matchResources")
	add := func(holder mapping.Fields) {
		for _, field := range []string{"ref", "templateRef"} {
			ref := holder.In(field)
			version := ref.Text("apiVersion")
			if version != selector.Text("apiVersion") || ref.Text("kind") != selector.Text("kind") {
				continue
			}
			group, _, _ := strings.Cut(version, "/")
			k := known{
				place: c.class.places()[0], group: group, kind: ref.Text("kind"), name: ref.Text("name"),
				namespace: cmp.Or(ref.Text("namespace"), c.class.Namespace),
			}
			if o := c.there[k]; o != nil && o.APIVersion == version && !slices.Contains(out, o) {
				out = append(out, o)
			}
		}
	}
	if resources["infrastructureCluster"] == true {
		add(c.spec.In("infrastructure"))
	}
	if resources["controlPlane"] == true {
		add(c.spec.In("controlPlane"))
		add(c.spec.In("controlPlane", "machineInfrastructure"))
	}
	for list, field := range map[string]string{"machineDeployments": "machineDeploymentClass", "machinePools": "machinePoolClass"} {
		names, _ := resources.In(field)["names"].([]any)
		for _, workers := range c.spec.List("workers", list) {
			if slices.ContainsFunc(names, func(name any) bool { return isNamed(name, workers.Text("class")) }) {
				for _, of := range []string{"bootstrap", "infrastructure"} {
					add(workers.In(of))
					add(workers.In("template", of))
				}
			}
		}
	}
	return out
}

// isNamed tells whether a name in a selector, which may begin or end with *, is that of a class.
func isNamed(name any, class string) bool {
	text, _ := name.(string)
	return text == class || strings.HasPrefix(text, "*") && strings.HasSuffix(class, text[1:]) ||
		strings.HasSuffix(text, "*") && strings.HasPrefix(class, strings.TrimSuffix(text, "*"))
}
