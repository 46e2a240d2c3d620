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

// checkTopologies reports variables that a ClusterClass does not have or requires, and values that its schemas do not take, as the webhook
// of Cluster API refuses them. The classes are among all.
func checkTopologies(ctx context.Context, clusters, all []*object) (findings diag.Findings) {
	there := referable(all, func(o *object) bool { return o.Kind == "ClusterClass" || o.Kind == kubeadmTemplate })
	for _, o := range clusters {
		if o.Kind != "Cluster" || groupOf(o) != clusterGroup || o.content != nil {
			continue
		}
		var content mapping.Fields
		if kjson.Unmarshal(o.JSON, &content) != nil {
			continue
		}
		topology := content.In("spec", "topology")
		name, namespace := topology.Text("classRef", "name"), topology.Text("classRef", "namespace")
		if name == "" {
			name, namespace = topology.Text("class"), topology.Text("classNamespace")
		}
		if namespace == "" {
			namespace = o.Namespace
		}
		ref := reference{group: clusterGroup, kind: "ClusterClass", namespace: namespace, name: name}
		class := there[ref.in(o.places()[0])]
		var declared mapping.Fields
		if class == nil || kjson.Unmarshal(class.JSON, &declared) != nil {
			continue // a reference that leads nowhere
		}
		v := variables{cluster: o, class: class.Name}
		v.read(declared)
		v.check(ctx, topology)
		findings = append(findings, v.findings...)
		plane := reference{group: kubeadmGroup, kind: kubeadmTemplate, namespace: namespace}
		for _, field := range []string{"templateRef", "ref"} {
			plane.name = cmp.Or(plane.name, declared.Text("spec", "controlPlane", field, "name"))
		}
		findings = append(findings, o.checkNodes(topology, class, there[plane.in(o.places()[0])])...)
	}
	return findings
}

const kubeadmGroup, kubeadmTemplate = "controlplane.cluster.x-k8s.io", "KubeadmControlPlaneTemplate"

// checkNodes reports a number of nodes that the control plane which a class makes refuses. The template is nil if it is not kubeadm's, or
// not in the repo. An etcd elsewhere may be in it, or in a patch of the class.
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

// variables are those of a ClusterClass, which a Cluster sets.
type variables struct {
	cluster  *object
	class    string
	names    []string // as the class has them
	declared map[string]variable
	// open says that a runtime extension declares further variables.
	open     bool
	findings diag.Findings
}

type variable struct {
	required bool
	schema   map[string]any // nil where nobody can judge by it
}

// read reads the variables of a class.
func (v *variables) read(content mapping.Fields) {
	v.declared = map[string]variable{}
	for _, declared := range content.List("spec", "variables") {
		name := declared.Text("name")
		required, _ := declared["required"].(bool)
		one := variable{required: required, schema: declared.In("schema", "openAPIV3Schema")}
		if raw, err := json.Marshal(one.schema); err != nil || bytes.Contains(raw, []byte("${")) {
			one.schema = nil
		}
		v.open = v.open || name == "" || strings.Contains(name, "${")
		v.names, v.declared[name] = append(v.names, name), one
	}
	for _, patch := range content.List("spec", "patches") {
		external := patch.In("external")
		v.open = v.open || external["discoverVariablesExtension"] != nil
	}
}

// check judges the variables of a whole cluster, and those of its control plane and its workers, which override them.
func (v *variables) check(ctx context.Context, topology mapping.Fields) {
	const at = "spec.topology"
	set := v.values(ctx, topology, at, "variables")
	for _, name := range v.names {
		declared := v.declared[name]
		_, hasDefault := declared.schema["default"]
		if declared.required && !hasDefault && !slices.Contains(set, name) && !strings.Contains(name, "${") {
			v.refuse(at+".variables", fmt.Sprintf("the ClusterClass %.80s requires the variable %.80s, which has no value here", v.class, name),
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

// values judges a list of values, and returns the names of the variables that have one.
func (v *variables) values(ctx context.Context, in mapping.Fields, at, list string) (set []string) {
	for i, value := range in.List(list) {
		name, field := value.Text("name"), fmt.Sprintf("%s.%s[%d]", at, list, i)
		declared, is := v.declared[name]
		switch {
		case name == "" || strings.Contains(name, "${"):
		case slices.Contains(set, name):
			v.refuse(field+".name", fmt.Sprintf("the variable %.80s has a value already", name), "keep one of the two")
		case !is && !v.open:
			v.refuse(field+".name", fmt.Sprintf("the ClusterClass %.80s has no variable %.80s", v.class, name), v.instead(name))
		case is && declared.schema != nil:
			v.judge(ctx, declared, field, value["value"])
		}
		set = append(set, name)
	}
	return set
}

// judge holds a value against the schema of its variable.
func (v *variables) judge(ctx context.Context, declared variable, field string, value any) {
	raw, err := json.Marshal(value)
	if err != nil || value == nil || bytes.Contains(raw, []byte("${")) {
		return
	}
	problems, err := schema.CheckValue(ctx, declared.schema, value)
	if err != nil {
		return // nobody can judge by this schema
	}
	for _, p := range problems {
		v.refuse(field+"."+p.Path, fmt.Sprintf("the ClusterClass %.80s does not take it: %s", v.class, p.Summary),
			cmp.Or(p.Hint, "give it a value that the schema of the variable takes"))
	}
}

func (v *variables) refuse(field, summary, hint string) {
	v.findings = append(v.findings, v.cluster.at(field, RuleRefused, summary, hint))
}

// instead says which variables there are.
func (v *variables) instead(name string) string {
	const most = 10
	switch nearest := diag.Nearest(name, v.names); {
	case nearest != "":
		return "did you mean " + nearest + "?"
	case len(v.names) == 0:
		return "it has none"
	}
	return "it has " + strings.Join(v.names[:min(len(v.names), most)], ", ")
}
