package validate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// role says what kind of object Cluster API expects in a field that refers to an object.
type role int

const (
	anyRole role = iota
	infraCluster
	controlPlane
	infraTemplate
	infraObject
	bootstrapTemplate
	bootstrapObject
	anyTemplate
)

// pointer is a field in which an object of Cluster API refers to another object. In the path, [] follows a list.
type pointer struct {
	path string
	role role
	// group and kind of the other object, for a field that has only its name.
	group, kind string
	// doubtful: the other object is often made by hand, or by a controller.
	doubtful bool
}

const clusterGroup = "cluster.x-k8s.io"

// machinePointers are the pointers of a Machine, below the path of its spec.
func machinePointers(spec string, infra, bootstrap role) []pointer {
	return []pointer{
		{path: spec + ".infrastructureRef", role: infra},
		{path: spec + ".bootstrap.configRef", role: bootstrap},
		{path: spec + ".bootstrap.dataSecretName", kind: "Secret", doubtful: true},
	}
}

// ofCluster is the field with the name of the Cluster that an object belongs to.
var ofCluster = pointer{path: "spec.clusterName", group: clusterGroup, kind: "Cluster"}

// corePointers are the pointers of the kinds of cluster.x-k8s.io, in v1beta1 and v1beta2.
var corePointers = map[string][]pointer{
	"Cluster": {
		{path: "spec.infrastructureRef", role: infraCluster},
		{path: "spec.controlPlaneRef", role: controlPlane},
		{path: "spec.topology.controlPlane.machineHealthCheck.remediationTemplate", role: anyTemplate},
		{path: "spec.topology.controlPlane.healthCheck.remediation.templateRef", role: anyTemplate},
		{path: "spec.topology.workers.machineDeployments[].machineHealthCheck.remediationTemplate", role: anyTemplate},
		{path: "spec.topology.workers.machineDeployments[].healthCheck.remediation.templateRef", role: anyTemplate},
	},
	"MachineDeployment": append(machinePointers("spec.template.spec", infraTemplate, bootstrapTemplate), ofCluster),
	"MachineSet":        append(machinePointers("spec.template.spec", infraTemplate, bootstrapTemplate), ofCluster),
	"MachinePool":       append(machinePointers("spec.template.spec", infraObject, bootstrapObject), ofCluster),
	"Machine":           append(machinePointers("spec", infraObject, bootstrapObject), ofCluster),
	"MachineHealthCheck": {
		ofCluster,
		{path: "spec.remediationTemplate", role: anyTemplate},
		{path: "spec.remediation.templateRef", role: anyTemplate},
	},
	"ClusterClass": {
		{path: "spec.infrastructure.ref", role: infraTemplate},
		{path: "spec.infrastructure.templateRef", role: infraTemplate},
		{path: "spec.controlPlane.ref", role: anyTemplate},
		{path: "spec.controlPlane.templateRef", role: anyTemplate},
		{path: "spec.controlPlane.machineInfrastructure.ref", role: infraTemplate},
		{path: "spec.controlPlane.machineInfrastructure.templateRef", role: infraTemplate},
		{path: "spec.controlPlane.machineHealthCheck.remediationTemplate", role: anyTemplate},
		{path: "spec.controlPlane.healthCheck.remediation.templateRef", role: anyTemplate},
		{path: "spec.workers.machineDeployments[].template.bootstrap.ref", role: bootstrapTemplate},
		{path: "spec.workers.machineDeployments[].bootstrap.templateRef", role: bootstrapTemplate},
		{path: "spec.workers.machineDeployments[].template.infrastructure.ref", role: infraTemplate},
		{path: "spec.workers.machineDeployments[].infrastructure.templateRef", role: infraTemplate},
		{path: "spec.workers.machineDeployments[].machineHealthCheck.remediationTemplate", role: anyTemplate},
		{path: "spec.workers.machineDeployments[].healthCheck.remediation.templateRef", role: anyTemplate},
		{path: "spec.workers.machinePools[].template.bootstrap.ref", role: bootstrapTemplate},
		{path: "spec.workers.machinePools[].bootstrap.templateRef", role: bootstrapTemplate},
		{path: "spec.workers.machinePools[].template.infrastructure.ref", role: infraTemplate},
		{path: "spec.workers.machinePools[].infrastructure.templateRef", role: infraTemplate},
	},
}

// controlPlanePointers are the pointers of control planes in the fields that providers use: kubeadm's, RKE2's, K3s', MicroK8s', Talos'.
var controlPlanePointers = slices.Concat([]pointer{
	{path: "spec.machineTemplate.infrastructureRef", role: infraTemplate},
	{path: "spec.machineTemplate.spec.infrastructureRef", role: infraTemplate},
	{path: "spec.machineTemplate.infrastructureTemplate", role: infraTemplate},
	{path: "spec.infrastructureRef", role: infraTemplate},
	{path: "spec.infrastructureTemplate", role: infraTemplate},
}, contentPointers("spec.kubeadmConfigSpec"), contentPointers("spec.template.spec.kubeadmConfigSpec"))

// bootstrapPointers are the pointers of bootstrap configurations.
var bootstrapPointers = slices.Concat(contentPointers("spec"), contentPointers("spec.template.spec"))

// contentPointers are the fields in which the configuration of a machine refers to Secrets.
func contentPointers(spec string) []pointer {
	return []pointer{
		{path: spec + ".files[].contentFrom.secret", kind: "Secret", doubtful: true},
		{path: spec + ".users[].passwdFrom.secret", kind: "Secret", doubtful: true},
	}
}

// infraPointers are the pointers of machines' templates, except the pointers to credentials.
var infraPointers = []pointer{
	{path: "spec.template.spec.network.devices[].addressesFromPools[]"},
	{path: "spec.network.devices[].addressesFromPools[]"},
	{path: "spec.template.spec.dataTemplate", group: "infrastructure." + clusterGroup, kind: "Metal3DataTemplate"},
}

// clusterAPI adds the references of an object of Cluster API.
func (c *referrer) clusterAPI(group string) {
	switch {
	case group == clusterGroup:
		for _, p := range corePointers[c.Kind] {
			c.follow(p)
		}
		c.class()
		c.agrees()
	case group == "addons."+clusterGroup && c.Kind == "ClusterResourceSet":
		for i, each := range c.fields.List("spec", "resources") {
			rule := RuleMissingConfig
			if each.Text("kind") == "Secret" {
				rule = RuleMissingSecret
			}
			c.put(reference{
				rule: rule, kind: each.Text("kind"), name: each.Text("name"), field: fmt.Sprintf("spec.resources[%d].name", i),
				// A chart keeps no Secret in clear, and templates of providers leave a network to their user. Cluster API applies the
				// others until this one is there.
				doubtful: c.Template != "",
			})
		}
	case group == "ipam."+clusterGroup && c.Kind == "IPAddressClaim":
		c.follow(pointer{path: "spec.poolRef"})
		c.follow(ofCluster)
	}
	what, _, _ := strings.Cut(group, ".")
	var pointers []pointer
	switch what {
	case "controlplane":
		pointers = controlPlanePointers
	case "bootstrap":
		pointers = bootstrapPointers
	case "infrastructure":
		pointers = infraPointers
	}
	for _, p := range pointers {
		c.follow(p)
	}
}

// follow adds the references of a field.
func (c *referrer) follow(p pointer) {
	eachAt(c.fields, p.path, func(at string, value any) {
		ref := reference{rule: RuleClusterRef, group: p.group, kind: p.kind, role: p.role, field: at, doubtful: p.doubtful}
		if text, ok := value.(string); ok {
			ref.name = text
		} else {
			inner, _ := value.(map[string]any)
			said := mapping.Fields(inner)
			ref.name, ref.field = said.Text("name"), at+".name"
			if ref.kind == "" {
				ref.kind, ref.group = said.Text("kind"), said.Text("apiGroup")
				if version := said.Text("apiVersion"); ref.group == "" {
					ref.group, _, _ = strings.Cut(version, "/")
				}
			}
			ref.namespace = said.Text("namespace")
		}
		if ref.kind == "Secret" {
			ref.rule = RuleMissingSecret
		}
		if ref.kind != "" {
			c.put(ref)
		}
	})
}

// class adds the reference of a Cluster to its ClusterClass, with the classes of its workers.
func (c *referrer) class() {
	topology := c.fields.In("spec", "topology")
	if c.Kind != "Cluster" || topology == nil {
		return
	}
	ref := reference{
		rule: RuleClusterRef, group: clusterGroup, kind: "ClusterClass", name: topology.Text("class"),
		namespace: topology.Text("classNamespace"), field: "spec.topology.class",
	}
	if ref.name == "" {
		ref.name, ref.namespace, ref.field = topology.Text("classRef", "name"), topology.Text("classRef", "namespace"),
			"spec.topology.classRef.name"
	}
	for _, list := range []string{"machineDeployments", "machinePools"} {
		for i, worker := range topology.List("workers", list) {
			if class := worker.Text("class"); class != "" && !strings.Contains(class, "${") {
				ref.workers = append(ref.workers, worked{list, class, fmt.Sprintf("spec.topology.workers.%s[%d].class", list, i)})
			}
		}
	}
	c.put(ref)
}

// worked is a class of workers in a ClusterClass that a Cluster refers to.
type worked struct{ list, class, field string }

// agrees reports an object that makes machines for another Cluster than its own.
func (c *referrer) agrees() {
	own, made := c.fields.Text("spec", "clusterName"), c.fields.Text("spec", "template", "spec", "clusterName")
	if own == "" || made == "" || own == made || strings.Contains(own+made, "${") {
		return
	}
	c.findings = append(c.findings, c.at("spec.template.spec.clusterName", RuleClusterRef,
		fmt.Sprintf("its machines are of the Cluster %.80s, and it is of %.80s", made, own), "both are the name of the same Cluster"))
}

// misfit says why an object of a kind cannot have the role. It returns "" if it can.
func (r role) misfit(group, kind string) string {
	what, _, _ := strings.Cut(group, ".")
	template := strings.HasSuffix(kind, "Template")
	switch r {
	case infraCluster, controlPlane:
		machines := strings.HasSuffix(kind, "Machine") || strings.HasSuffix(kind, "MachinePool")
		switch {
		case template:
			return "a template is for ClusterClasses and for machines"
		case what == "bootstrap" || machines || r == infraCluster && kind == "KubeadmControlPlane" ||
			r == controlPlane && what == "infrastructure" && strings.HasSuffix(kind, "Cluster") && kind != "VCluster":
			return map[role]string{infraCluster: "it is not the infrastructure of a cluster", controlPlane: "it is no control plane"}[r]
		}
	case infraTemplate, bootstrapTemplate, anyTemplate:
		if !template {
			return "machines and clusters are made of templates, whose kinds end in Template"
		}
	case infraObject, bootstrapObject:
		if template {
			return "it is named as it is, not made of a template"
		}
	case anyRole:
	}
	switch {
	case (r == infraTemplate || r == infraObject) && (what == "bootstrap" || what == "controlplane"):
		return "it is no infrastructure"
	case (r == bootstrapTemplate || r == bootstrapObject) && (what == "infrastructure" || what == "controlplane"):
		return "it is no bootstrap configuration"
	}
	return ""
}

// eachAt visits the values at a path. at is the path of the value, with the indexes of list items.
func eachAt(f mapping.Fields, path string, visit func(at string, value any)) {
	eachBelow(map[string]any(f), "", path, visit)
}

func eachBelow(value any, at, path string, visit func(at string, value any)) {
	if path == "" {
		visit(at, value)
		return
	}
	first, rest, _ := strings.Cut(path, ".")
	name, list := strings.CutSuffix(first, "[]")
	inner, _ := value.(map[string]any)
	next := inner[name]
	if next == nil {
		return
	}
	if at != "" {
		name = at + "." + name
	}
	if !list {
		eachBelow(next, name, rest, visit)
		return
	}
	items, _ := next.([]any)
	for i, item := range items {
		eachBelow(item, fmt.Sprintf("%s[%d]", name, i), rest, visit)
	}
}
