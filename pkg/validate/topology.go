package validate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
	"github.com/fleetctl/fleetctl/pkg/validate/schema"
)

// checkTopologies reports what the webhook of Cluster API refuses: unknown variables, missing required variables, and values that the
// schemas of the ClusterClass do not accept. The classes are among all, and each is read once.
func checkTopologies(ctx context.Context, clusters, all []*object) (findings diag.Findings) {
	there := referable(all, func(o *object) bool { return o.Kind == "ClusterClass" || o.Kind == kubeadmTemplate })
	read := map[*object]*class{}
	for _, o := range clusters {
		if o.Kind != "Cluster" || groupOf(o) != clusterGroup || o.content != nil {
			continue
		}
		declared := o.leadingTo(there, "ClusterClass")
		if declared == nil {
			continue
		}
		c := read[declared]
		if c == nil {
			c = readClass(declared)
			read[declared] = c
		}
		var content mapping.Fields
		_ = kjson.Unmarshal(o.JSON, &content) // it was read before
		topology := content.In("spec", "topology")
		v := variables{cluster: o, class: c}
		v.check(ctx, topology)
		findings = append(findings, v.findings...)
		findings = append(findings, o.checkNodes(topology, declared, declared.leadingTo(there, kubeadmTemplate))...)
	}
	return findings
}

// leadingTo returns the object of a kind that o refers to, or nil if there does not have it.
func (o *object) leadingTo(there map[known]*object, kind string) *object {
	for _, ref := range o.refs {
		if ref.kind == kind {
			return there[ref.in(o.places()[0])]
		}
	}
	return nil
}

const kubeadmTemplate = "KubeadmControlPlaneTemplate"

// checkNodes reports a number of control plane nodes that kubeadm's control plane refuses. template is nil if the control plane is not
// kubeadm's, or if the repo does not have it. An external etcd may be in the template, or in a patch of the class.
func (o *object) checkNodes(topology mapping.Fields, class, template *object) diag.Findings {
	nodes, given := topology.In("controlPlane")["replicas"].(int64)
	elsewhere := []byte("external")
	if !given || nodes > 0 && nodes%2 == 1 || template == nil {
		return nil
	}
	if bytes.Contains(class.JSON, elsewhere) || bytes.Contains(template.JSON, elsewhere) {
		return nil
	}
	return diag.Findings{o.at("spec.topology.controlPlane.replicas", RuleRefused,
		fmt.Sprintf("%d is even, and etcd runs on the nodes of the control plane", nodes), "write 1, 3 or 5")}
}

// class has the variables of a ClusterClass.
type class struct {
	name     string
	names    []string // of the variables, in their order
	declared map[string]variable
	// open says that a runtime extension declares further variables.
	open bool
}

type variable struct {
	required, hasDefault bool
	values               *schema.Value // nil if the schema is unusable
}

func readClass(o *object) *class {
	var content mapping.Fields
	_ = kjson.Unmarshal(o.JSON, &content) // it was read before
	c := &class{name: o.Name, declared: map[string]variable{}}
	for _, declared := range content.List("spec", "variables") {
		name, form := declared.Text("name"), declared.In("schema", "openAPIV3Schema")
		one := variable{}
		one.required, _ = declared["required"].(bool)
		_, one.hasDefault = form["default"]
		if raw, err := json.Marshal(form); form != nil && err == nil && !bytes.Contains(raw, []byte("${")) {
			one.values, _ = schema.NewValue(form) // a schema that was read from JSON can be written as JSON
		}
		c.open = c.open || name == "" || strings.Contains(name, "${")
		c.names, c.declared[name] = append(c.names, name), one
	}
	for _, patch := range content.List("spec", "patches") {
		c.open = c.open || patch.In("external")["discoverVariablesExtension"] != nil
	}
	return c
}

// variables checks the variables of a ClusterClass that a Cluster sets.
type variables struct {
	cluster  *object
	class    *class
	findings diag.Findings
}

// check checks the variables of a whole cluster, and those of its control plane and its workers, which override them.
func (v *variables) check(ctx context.Context, topology mapping.Fields) {
	const at = "spec.topology"
	set := v.values(ctx, topology, at, "variables")
	for _, name := range v.class.names {
		declared := v.class.declared[name]
		if declared.required && !declared.hasDefault && !slices.Contains(set, name) && !strings.Contains(name, "${") {
			v.refuse(at+".variables", fmt.Sprintf("the ClusterClass %.80s requires the variable %.80s, which has no value here", v.class.name, name),
				"add it to the list")
		}
	}
	plane := topology.In("controlPlane", "variables")
	v.values(ctx, plane, at+".controlPlane.variables", "overrides")
	for _, list := range []string{"machineDeployments", "machinePools"} {
		for i, workers := range topology.List("workers", list) {
			v.values(ctx, workers.In("variables"), fmt.Sprintf("%s.workers.%s[%d].variables", at, list, i), "overrides")
		}
	}
}

// values checks a list of values, and returns the names of the variables that have a value.
func (v *variables) values(ctx context.Context, in mapping.Fields, at, list string) (set []string) {
	for i, value := range in.List(list) {
		name, field := value.Text("name"), fmt.Sprintf("%s.%s[%d]", at, list, i)
		declared, is := v.class.declared[name]
		switch {
		case name == "" || strings.Contains(name, "${"):
		case slices.Contains(set, name):
			v.refuse(field+".name", fmt.Sprintf("the variable %.80s has a value already", name), "keep one of the two")
		case !is && !v.class.open:
			v.refuse(field+".name", fmt.Sprintf("the ClusterClass %.80s has no variable %.80s", v.class.name, name), v.instead(name))
		case is && declared.values != nil:
			v.judge(ctx, declared, field, value["value"])
		}
		set = append(set, name)
	}
	return set
}

// judge checks a value against the schema of its variable.
func (v *variables) judge(ctx context.Context, declared variable, field string, value any) {
	raw, err := json.Marshal(value)
	if err != nil || value == nil || bytes.Contains(raw, []byte("${")) {
		return
	}
	problems, err := declared.values.Check(ctx, value)
	if err != nil {
		return // the schema is unusable
	}
	for _, p := range problems {
		v.refuse(field+"."+p.Path, fmt.Sprintf("the ClusterClass %.80s does not take it: %s", v.class.name, p.Summary),
			cmp.Or(p.Hint, "give it a value that the schema of the variable takes"))
	}
}

func (v *variables) refuse(field, summary, hint string) {
	v.findings = append(v.findings, v.cluster.at(field, RuleRefused, summary, hint))
}

// instead is a hint with the variables of the class.
func (v *variables) instead(name string) string {
	const most = 10
	switch nearest := diag.Nearest(name, v.class.names); {
	case nearest != "":
		return "did you mean " + nearest + "?"
	case len(v.class.names) == 0:
		return "it has none"
	}
	return "it has " + strings.Join(v.class.names[:min(len(v.class.names), most)], ", ")
}
