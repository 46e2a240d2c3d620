package validate

import (
	"fmt"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// reference is a field in which one object refers to another object.
type reference struct {
	rule                  string
	kind, namespace, name string
	// group is the API group of the kind, if several groups may have a kind of this name.
	group string
	// field is the path of the field.
	field string
	// doubtful: the other object may well be made by hand, so its absence is only a warning.
	doubtful bool
	// role is the role of the other object in Cluster API.
	role role
	// port is the name or number of the Service's port, and portField is the field with it.
	port, portField string
	// key is the key of the ConfigMap or Secret, and keyField is the field with it.
	key, keyField string
	// declared: people alone make objects of the kind, so the repo has them all unless others apply objects to the same cluster.
	declared bool
	// guess: others may make the object, so only a name that is nearly that of an object in the repo is reported.
	guess bool
	// workers are the classes of workers in the ClusterClass that a Cluster uses.
	workers []worked
}

// referencesOf returns the references and selectors of an object that can be followed in the repo.
func referencesOf(o *object, content map[string]any) ([]reference, []selection) {
	c := &referrer{object: o, fields: content}
	group := groupOf(o)
	c.kubernetes(group)
	switch {
	case strings.HasSuffix(group, ".toolkit.fluxcd.io"):
		c.flux()
	case strings.HasSuffix(group, clusterGroup):
		c.clusterAPI(group)
		if group == "infrastructure."+clusterGroup || group == "controlplane."+clusterGroup {
			c.identity()
		}
	}
	return c.refs, c.selects
}

type referrer struct {
	*object
	fields mapping.Fields
	refs   []reference
	// selects are the selectors of the object.
	selects []selection
}

func (c *referrer) add(rule, kind, namespace, name, field string) {
	c.put(reference{rule: rule, kind: kind, namespace: namespace, name: name, field: field})
}

// put adds a reference, unless it has no name or a name with a variable. Without a namespace it leads into the object's own namespace.
func (c *referrer) put(ref reference) {
	if ref.name == "" || strings.Contains(ref.name+ref.namespace+ref.kind, "${") {
		return
	}
	if ref.namespace == "" {
		ref.namespace = c.Namespace
	}
	if withoutNamespace[ref.kind] {
		ref.namespace = ""
	}
	c.refs = append(c.refs, ref)
}

// secret adds the reference of a field that names a Secret of the object's namespace.
func (c *referrer) secret(path ...string) {
	c.add(RuleMissingSecret, "Secret", "", c.fields.Text(append(path, "name")...), strings.Join(path, ".")+".name")
}

func (c *referrer) source(path ...string) {
	at := c.fields.In(path...)
	c.add(RuleMissingSource, at.Text("kind"), at.Text("namespace"), at.Text("name"), strings.Join(path, ".")+".name")
}

func (c *referrer) flux() {
	switch c.Kind {
	case "Kustomization":
		c.source("spec", "sourceRef")
		c.secret("spec", "decryption", "secretRef")
		c.from("substituteFrom", "spec", "postBuild", "substituteFrom")
		c.dependsOn()
		c.kubeConfig()
		c.onThisCluster()
	case "HelmRelease":
		c.source("spec", "chart", "spec", "sourceRef")
		c.source("spec", "chartRef")
		c.from("valuesFrom", "spec", "valuesFrom")
		c.dependsOn()
		c.kubeConfig()
		c.onThisCluster()
	case "GitRepository", "HelmRepository", "OCIRepository", "Bucket", "HelmChart", "ImageRepository", "Provider", "Receiver":
		for _, field := range []string{"secretRef", "certSecretRef", "proxySecretRef"} {
			c.secret("spec", field)
		}
		c.secret("spec", "verify", "secretRef")
		c.source("spec", "sourceRef")      // of a HelmChart
		c.declared("", "spec.resources[]") // of a Receiver
	case "Alert":
		c.declared("Provider", "spec.providerRef")
		c.declared("", "spec.eventSources[]")
	case "ImagePolicy":
		c.declared("ImageRepository", "spec.imageRepositoryRef")
	case "ImageUpdateAutomation":
		c.source("spec", "sourceRef")
	}
}

// from adds the references to the ConfigMaps and Secrets with values.
func (c *referrer) from(name string, path ...string) {
	for i, from := range c.fields.List(path...) {
		if optional, _ := from["optional"].(bool); optional {
			continue
		}
		rule := RuleMissingConfig
		if from.Text("kind") == "Secret" {
			rule = RuleMissingSecret
		}
		at := fmt.Sprintf("%s[%d].name", strings.Join(append(path[:len(path)-1:len(path)-1], name), "."), i)
		n := len(c.refs)
		c.add(rule, from.Text("kind"), "", from.Text("name"), at)
		if name != "valuesFrom" || len(c.refs) == n {
			continue
		}
		ref := &c.refs[n]
		ref.key, ref.keyField = "values.yaml", at
		if key := from.Text("valuesKey"); key != "" {
			ref.key, ref.keyField = key, strings.TrimSuffix(at, "name")+"valuesKey"
		}
	}
}

// kubeConfig adds the reference to the Secret or the ConfigMap that leads to another cluster.
func (c *referrer) kubeConfig() {
	c.secret("spec", "kubeConfig", "secretRef")
	c.add(RuleMissingConfig, "ConfigMap", "", c.fields.Text("spec", "kubeConfig", "configMapRef", "name"), "spec.kubeConfig.configMapRef.name")
}

func (c *referrer) dependsOn() {
	for i, on := range c.fields.List("spec", "dependsOn") {
		c.add(RuleMissingDepends, c.Kind, on.Text("namespace"), on.Text("name"), fmt.Sprintf("spec.dependsOn[%d].name", i))
	}
}

// sayInComment is the part of a hint that only helps for an existing file.
const sayInComment = "; where something else makes it, say so in a comment: # fleetctl:ignore "

// WithoutComment returns a hint without the advice to write a comment, for a finding in a file that does not exist yet.
func WithoutComment(hint string) string {
	hint, _, _ = strings.Cut(hint, sayInComment)
	return hint
}

// missing returns the finding about a reference to an object that does not exist. elsewhere says that the object may be made outside of
// this repo. Then only a name that is mistyped is an error.
func (o *object) missing(ref reference, where string, nearest string, elsewhere bool) diag.Finding {
	doubt := (ref.doubtful || elsewhere) && !isSlip(ref.name, nearest)
	if doubt {
		nearest = ""
	}
	name := ref.name
	if ref.namespace != "" {
		name = ref.namespace + "/" + name
	}
	hint := ""
	switch {
	case isHashed(ref.name, nearest):
		hint = "kustomize puts a hash behind the name, " + nearest +
			": set disableNameSuffixHash, or tell it the field with a nameReference in configurations"
	case nearest != "":
		hint = "did you mean " + nearest + "?"
	case ref.rule == RuleMissingObject && ref.kind != "Secret":
		hint = "add it to the namespace" + sayInComment + ref.rule + " reason"
	case ref.rule == RuleMissingObject, ref.rule == RuleMissingSecret, ref.rule == RuleMissingID && ref.kind == "Secret":
		hint = "put it into the repo, encrypted with SOPS" + sayInComment + ref.rule + " reason"
	case ref.kind == "HelmChart":
		hint = "a file like it stands in the folder of the environment: `fleetctl cluster add` writes it with the first cluster of a flavour"
	case doubt && (ref.rule == RuleMissingSource || ref.rule == RuleMissingDepends || ref.rule == RuleMissingConfig):
		hint = "add it to the repo" + sayInComment + ref.rule + " reason"
	case ref.rule == RuleMissingID:
		hint = "`fleetctl identity add` writes one into the mgmt folder of the management cluster"
	}
	f := o.at(ref.field, ref.rule, fmt.Sprintf("there is no %s %.120s%s", ref.kind, name, where), hint)
	if doubt {
		f.Severity = diag.SeverityWarning
	}
	return f
}

// isHashed tells whether with is name and the hash that generators of kustomize append.
func isHashed(name, with string) bool {
	hash, ok := strings.CutPrefix(with, name+"-")
	return ok && len(hash) == 10 && strings.Trim(hash, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}
