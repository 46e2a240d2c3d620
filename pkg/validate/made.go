package validate

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// maker says which object a controller makes from another object: its kind, and the fields with its name.
type maker struct {
	kind string
	// names are the paths of the fields with names. own says that without such a field the made object has the name of the first one.
	names []string
	own   bool
	// namespace is the field beside the name that has the namespace; "" means the namespace of the first object.
	namespace string
	// everywhere says that the controller makes the object in each namespace of spec.namespaces, or in any namespace.
	everywhere bool
}

// makers are the kinds from which controllers make objects that other objects refer to.
var makers = map[string][]maker{
	"ExternalSecret": {{kind: "Secret", names: []string{"spec.target.name"}, own: true}},
	"ClusterExternalSecret": {{
		kind: "Secret", names: []string{"spec.externalSecretSpec.target.name", "spec.externalSecretName"},
		own: true, everywhere: true,
	}},
	"SealedSecret":       {{kind: "Secret", names: []string{"spec.template.metadata.name"}, own: true, namespace: "namespace"}},
	"SopsSecret":         {{kind: "Secret", names: []string{"spec.secretTemplates[].name"}}},
	"VaultStaticSecret":  {{kind: "Secret", names: []string{"spec.destination.name"}}},
	"VaultDynamicSecret": {{kind: "Secret", names: []string{"spec.destination.name"}}},
	"VaultPKISecret":     {{kind: "Secret", names: []string{"spec.destination.name"}}},
	"HCPVaultSecretsApp": {{kind: "Secret", names: []string{"spec.destination.name"}}},
	"OnePasswordItem":    {{kind: "Secret", own: true}},
	"Certificate":        {{kind: "Secret", names: []string{"spec.secretName"}}},
	"InfisicalSecret": {
		{kind: "Secret", names: []string{"spec.managedSecretReference.secretName"}, namespace: "secretNamespace"},
		{kind: "Secret", names: []string{"spec.managedKubeSecretReferences[].secretName"}, namespace: "secretNamespace"},
	},
	"DopplerSecret": {{kind: "Secret", names: []string{"spec.managedSecret.name"}, namespace: "namespace"}},
	"AzureKeyVaultSecret": {
		{kind: "Secret", names: []string{"spec.output.secret.name"}},
		{kind: "ConfigMap", names: []string{"spec.output.configMap.name"}},
	},
	"SecretProviderClass": {{kind: "Secret", names: []string{"spec.secretObjects[].secretName"}}},
	"BitwardenSecret":     {{kind: "Secret", names: []string{"spec.secretName"}}},
	"StringSecret":        {{kind: "Secret", own: true}},
	"BasicAuth":           {{kind: "Secret", own: true}},
	"SSHKeyPair":          {{kind: "Secret", own: true}},
	"ObjectBucketClaim":   {{kind: "Secret", own: true}, {kind: "ConfigMap", own: true}},
	"Bundle":              {{kind: "Secret", own: true, everywhere: true}, {kind: "ConfigMap", own: true, everywhere: true}},
	"ArtifactGenerator":   {{kind: "ExternalArtifact", names: []string{"spec.artifacts[].name"}}},
}

// anywhere stands for any text in the namespace or name of a made object: for namespaces that labels choose, and for inputs in names.
const anywhere = "*"

// isLike tells whether a text matches a pattern in which anywhere stands for any text.
func isLike(pattern, text string) bool {
	parts := strings.Split(pattern, anywhere)
	if len(parts) == 1 {
		return pattern == text
	}
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

// madeOf returns the other objects that a controller makes from an object, or copies from it.
func madeOf(o *object, content map[string]any) []known {
	f := mapping.Fields(content)
	var out []known
	for _, m := range makers[o.Kind] {
		out = append(out, m.of(o, f)...)
	}
	switch o.Kind {
	case "FluxInstance":
		if sync := f.In("spec", "sync"); sync != nil {
			name := cmp.Or(sync.Text("name"), o.Namespace) // Flux Operator names both after the namespace
			out = append(out, known{kind: sync.Text("kind"), namespace: o.Namespace, name: name},
				known{kind: "Kustomization", namespace: o.Namespace, name: name})
		}
	case "ResourceSet":
		out = append(out, resourceSet(o, f)...)
	case "StatefulSet":
		for _, claim := range f.List("spec", "volumeClaimTemplates") {
			name := claim.Text("metadata", "name") + "-" + o.Name + "-" + anywhere
			out = append(out, known{kind: "PersistentVolumeClaim", namespace: o.Namespace, name: name})
		}
	case "Secret", "ConfigMap":
		notes := f.In("metadata", "annotations")
		for _, name := range []string{
			"reflector.v1.k8s.emberstack.com/reflection-auto-enabled", "replicator.v1.mittwald.de/replicate-to",
			"replicator.v1.mittwald.de/replicate-to-matching",
		} {
			if text, _ := notes[name].(string); text != "" && text != "false" {
				out = append(out, known{kind: o.Kind, namespace: anywhere, name: o.Name})
			}
		}
	}
	return slices.DeleteFunc(out, func(k known) bool { return k.kind == "" || k.name == "" })
}

func (m maker) of(o *object, f mapping.Fields) (out []known) {
	for _, path := range m.names {
		parent, last := path[:strings.LastIndex(path, ".")], path[strings.LastIndex(path, ".")+1:]
		eachAt(f, parent, func(_ string, value any) {
			inner, _ := value.(map[string]any)
			said := mapping.Fields(inner)
			namespace := o.Namespace
			if m.namespace != "" && said.Text(m.namespace) != "" {
				namespace = said.Text(m.namespace)
			}
			if name := said.Text(last); name != "" && len(out) == 0 || name != "" && strings.Contains(path, "[]") {
				out = append(out, known{kind: m.kind, namespace: namespace, name: name})
			}
		})
	}
	if len(out) == 0 && m.own {
		out = []known{{kind: m.kind, namespace: o.Namespace, name: o.Name}}
	}
	if !m.everywhere {
		return out
	}
	var all []known
	named, _ := f.In("spec")["namespaces"].([]any)
	if len(named) == 0 || f.In("spec")["namespaceSelector"] != nil || f.In("spec")["namespaceSelectors"] != nil {
		named = append(slices.Clip(named), anywhere)
	}
	for _, k := range out {
		for _, namespace := range named {
			k.namespace, _ = namespace.(string)
			all = append(all, k)
		}
	}
	return all
}

var (
	setVariable = regexp.MustCompile(`<<.*?>>`)
	setKind     = regexp.MustCompile(`(?m)^\s*(?:- )?kind:\s*["']?(\w+)`)
)

// resourceSet returns the objects of a ResourceSet. A name with inputs in it may be any text. So may every field if the resources are one
// text.
func resourceSet(o *object, f mapping.Fields) (out []known) {
	for _, each := range f.List("spec", "resources") {
		k := known{kind: each.Text("kind"), namespace: each.Text("metadata", "namespace"), name: each.Text("metadata", "name")}
		if k.namespace == "" {
			k.namespace = o.Namespace
		}
		k.namespace, k.name = setVariable.ReplaceAllString(k.namespace, anywhere), setVariable.ReplaceAllString(k.name, anywhere)
		out = append(out, k)
	}
	for _, kind := range setKind.FindAllStringSubmatch(f.Text("spec", "resourcesTemplate"), -1) {
		out = append(out, known{kind: kind[1], namespace: anywhere, name: anywhere})
	}
	return out
}
