package validate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// selection is a selector of an object, for pods, machines or clusters in the object's namespace.
type selection struct {
	field, what string
	selector    labels.Selector
	// wanted are the labels of its matchLabels.
	wanted map[string]string
	// cluster is the Cluster whose machines it selects.
	cluster string
	// ports are the names of the pods' ports that a Service leads to, by their fields.
	ports map[string]string
}

// What a selection selects.
const (
	selectsPods     = "pod"
	selectsMachines = "machine"
	selectsClusters = "Cluster"
)

// givenLabels are the labels that controllers set on pods.
var givenLabels = []string{
	"apps.kubernetes.io/pod-index", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-completion-index",
	"batch.kubernetes.io/job-name", "controller-revision-hash", "controller-uid", "job-name", "pod-template-generation", "pod-template-hash",
	"statefulset.kubernetes.io/pod-name",
}

// selections adds the selectors of an object.
func (c *referrer) selections(group string) {
	if spec := podSpecs[group+"/"+c.Kind]; spec != nil {
		c.neighbours(strings.Join(spec, "."))
	}
	switch group + "/" + c.Kind {
	case "/Service":
		selector := c.fields.In("spec", "selector")
		c.selectBy(selection{field: "spec.selector", what: selectsPods, ports: c.targetPorts()},
			mapping.Fields{"matchLabels": map[string]any(selector)})
	case "policy/PodDisruptionBudget":
		c.selectBy(selection{field: "spec.selector", what: selectsPods}, c.fields.In("spec", "selector"))
	case "networking.k8s.io/NetworkPolicy":
		c.selectBy(selection{field: "spec.podSelector", what: selectsPods}, c.fields.In("spec", "podSelector"))
	case clusterGroup + "/MachineHealthCheck":
		c.selectBy(selection{field: "spec.selector", what: selectsMachines, cluster: c.fields.Text("spec", "clusterName")},
			c.fields.In("spec", "selector"))
	case "addons." + clusterGroup + "/ClusterResourceSet":
		c.selectBy(selection{field: "spec.clusterSelector", what: selectsClusters}, c.fields.In("spec", "clusterSelector"))
	}
}

// neighbours adds the selectors with which pods look for other pods of their namespace, to be near them or far from them.
func (c *referrer) neighbours(spec string) {
	look := func(at string, value any) {
		inner, _ := value.(map[string]any)
		term := mapping.Fields(inner)
		if term["namespaces"] == nil && term["namespaceSelector"] == nil {
			c.selectBy(selection{field: at + ".labelSelector", what: selectsPods}, term.In("labelSelector"))
		}
	}
	eachAt(c.fields, spec+".topologySpreadConstraints[]", look)
	for _, way := range []string{".affinity.podAffinity", ".affinity.podAntiAffinity"} {
		eachAt(c.fields, spec+way+".requiredDuringSchedulingIgnoredDuringExecution[]", look)
		eachAt(c.fields, spec+way+".preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm", look)
	}
}

// targetPorts returns the named ports of pods that a Service leads to, by their fields.
func (c *referrer) targetPorts() map[string]string {
	ports := map[string]string{}
	for i, port := range c.fields.List("spec", "ports") {
		if name := port.Text("targetPort"); strings.Trim(name, "0123456789") != "" {
			ports[fmt.Sprintf("spec.ports[%d].targetPort", i)] = name
		}
	}
	return ports
}

// selectBy adds a selector, unless it selects everything or has a variable.
func (c *referrer) selectBy(s selection, fields mapping.Fields) {
	text, err := json.Marshal(fields)
	if err != nil || len(fields) == 0 || strings.Contains(string(text), "${") {
		return
	}
	var says metav1.LabelSelector
	if json.Unmarshal(text, &says) != nil {
		return // its schema reports it
	}
	for _, name := range givenLabels {
		delete(says.MatchLabels, name)
		if slices.ContainsFunc(says.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key == name }) {
			return
		}
	}
	s.wanted = says.MatchLabels
	s.selector, err = metav1.LabelSelectorAsSelector(&says)
	if err == nil && !s.selector.Empty() {
		c.selects = append(c.selects, s)
	}
}

// labelled is an object that a selector may find.
type labelled struct {
	// by is the object itself, or the one that a controller makes it of.
	by     *object
	labels labels.Set
	// cluster is the name of a machine's cluster, or of a Cluster; "" if it is not known.
	cluster string
	// ports are the names of the ports of a pod's containers.
	ports []string
	// open: Flux fills in a part of it.
	open bool
}

// labelledBy are the pods or machines that a controller makes of an object, or the object itself if it is a Cluster.
func labelledBy(o *object) (what string, out labelled) {
	var content map[string]any
	if json.Unmarshal(o.JSON, &content) != nil {
		return "", out
	}
	f, group := mapping.Fields(content), groupOf(o)
	out.by = o
	out.open = strings.Contains(string(o.JSON), "${")
	spec := podSpecs[group+"/"+o.Kind]
	switch {
	case spec != nil:
		out.labels = textsOf(f.In(append(slices.Clone(spec[:len(spec)-1]), "metadata", "labels")...))
		for _, list := range []string{"initContainers", "containers"} {
			eachAt(f, strings.Join(spec, ".")+"."+list+"[].ports[].name", func(_ string, value any) {
				if name, ok := value.(string); ok {
					out.ports = append(out.ports, name)
				}
			})
		}
		return selectsPods, out
	case group == clusterGroup && o.Kind == "Cluster":
		out.labels, out.cluster = textsOf(f.In("metadata", "labels")), o.Name
		out.open = out.open || f.In("spec", "topology") != nil // a topology makes machines
		return selectsClusters, out
	case group == clusterGroup && slices.Contains([]string{"MachineDeployment", "MachineSet", "MachinePool"}, o.Kind):
		out.labels, out.cluster = textsOf(f.In("spec", "template", "metadata", "labels")), f.Text("spec", "clusterName")
		out.labels[clusterGroup+"/cluster-name"] = out.cluster
		out.labels[clusterGroup+"/"+map[string]string{
			"MachineDeployment": "deployment-name", "MachineSet": "set-name", "MachinePool": "pool-name",
		}[o.Kind]] = o.Name
		return selectsMachines, out
	case group == "controlplane."+clusterGroup && !strings.HasSuffix(o.Kind, "Template"):
		out.labels = textsOf(f.In("spec", "machineTemplate", "metadata", "labels"))
		out.labels[clusterGroup+"/control-plane"], out.labels[clusterGroup+"/control-plane-name"] = "", o.Name
		return selectsMachines, out
	}
	return "", out
}

// finds tells whether a selector finds an object.
func (s *selection) finds(l labelled) bool {
	if s.what != selectsMachines {
		return s.selector.Matches(l.labels)
	}
	if l.cluster == "" { // the object's cluster is unknown, so it may be the selector's cluster
		l.labels = labels.Merge(l.labels, labels.Set{clusterGroup + "/cluster-name": s.cluster})
	}
	return (l.cluster == "" || l.cluster == s.cluster) && s.selector.Matches(l.labels)
}

// textsOf returns the fields of a mapping that are texts.
func textsOf(f mapping.Fields) labels.Set {
	out := labels.Set{}
	for name, value := range f {
		if text, ok := value.(string); ok {
			out[name] = text
		}
	}
	return out
}
