package render

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Source is a place in the repo. Line counts from 1; 0 means unknown.
type Source struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
}

// Owner is the Flux object that applies others: a Kustomization, or a HelmRelease.
type Owner struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String is "Kind namespace/name".
func (o Owner) String() string { return o.Kind + " " + o.Namespace + "/" + o.Name }

// The kinds of an Owner.
const (
	KindKustomization = "Kustomization"
	KindHelmRelease   = "HelmRelease"
)

// Object is one object that Flux would apply. It is shared: do not change it.
type Object struct {
	APIVersion, Kind, Namespace, Name string
	// JSON is the object with sorted keys: equal objects have equal bytes.
	JSON []byte
	// Source is the document that declares it; for an object of a chart that of the HelmRelease.
	Source Source
	// Template is the file of the chart that makes it, "" for an object that stands in the repo as it is.
	Template string
	// Owner applies it.
	Owner Owner
	// GitSource is the source that Owner follows. It is flux-system for the fleet's own branch. Its content is rendered from the files at
	// hand, whatever revision it follows.
	GitSource string
	// ManagementCluster is the cluster whose Flux applies the object. Environment and Cluster (a workload cluster) are the ones whose folder
	// declares the object, or "".
	ManagementCluster, Environment, Cluster string
	// Targets are the workload clusters that it is applied to, through their kubeconfig or by their own Flux; none: it is applied to
	// the management cluster.
	Targets []string
	// Suspended says that Owner, or what applies it, is suspended: Flux does not apply this until it is resumed.
	Suspended bool
}

// Kustomization is a Flux Kustomization that was followed.
type Kustomization struct {
	Owner
	// Source declares it; none for a management cluster's own, where the repo has no folder for it yet.
	Source Source
	// Path is the folder that it applies.
	Path                                    string
	GitSource                               string
	ManagementCluster, Environment, Cluster string
	Targets                                 []string
	Suspended                               bool
}

// Release is a HelmRelease that was found.
type Release struct {
	Owner
	Object *Object
	// Chart is the folder of its chart in the repo, "" where it comes from elsewhere.
	Chart string
	// ReleaseName and ReleaseNamespace are the release's name and namespace as Helm sees them.
	ReleaseName, ReleaseNamespace string
	// Rendered says that its objects are in the result. Where it is false a finding says why.
	Rendered bool
}

// YAML is the object as a YAML document without a separator, keys sorted.
func (o *Object) YAML() []byte { return AppendYAML(nil, o.JSON) }

// ID is "Kind namespace/name", without the namespace of cluster-wide kinds.
func (o *Object) ID() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// identity is what an object is known by.
type identity struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
}

// content is an object before it is known who applies it, and to what.
type content struct {
	identity
	json     []byte
	source   Source
	template string
}

// newContent reads the fields that identify an object. The error says which field is missing.
func newContent(text []byte) (*content, error) {
	c := &content{json: text}
	if err := json.Unmarshal(text, &c.identity); err != nil {
		return nil, noObject(err)
	}
	switch {
	case c.APIVersion == "":
		return nil, errMissing("apiVersion")
	case c.Kind == "":
		return nil, errMissing("kind")
	case c.Metadata.Name == "" && !isList(c.Kind):
		return nil, errMissing("metadata.name")
	}
	return c, nil
}

// noObject says what stands in the place of an object, or of a field that identifies one.
func noObject(err error) error {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return fmt.Errorf("not a Kubernetes object: %w", err)
	}
	what, _, _ := strings.Cut(wrong.Value, " ")
	is := map[string]string{"array": "a list", "object": "fields", "string": "text", "number": "a number", "bool": "true or false"}
	subject := "it"
	if wrong.Field != "" {
		subject = wrong.Field
	}
	return fmt.Errorf("not a Kubernetes object: %s is %s", subject, cmp.Or(is[what], what))
}

func errMissing(field string) error {
	return fmt.Errorf("not a Kubernetes object: %s is missing", field)
}

// with returns the content with changed fields, in its canonical form.
func (c *content) with(change func(fields map[string]any)) (*content, error) {
	var fields map[string]any
	if err := utiljson.Unmarshal(c.json, &fields); err != nil {
		return nil, err
	}
	change(fields)
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	changed, err := newContent(text)
	if err != nil {
		return nil, err
	}
	changed.source, changed.template = c.source, c.template
	return changed, nil
}

// compareContents orders by what objects are known by.
func compareContents(a, b *content) int {
	return cmp.Or(
		cmp.Compare(a.Metadata.Namespace, b.Metadata.Namespace), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Metadata.Name, b.Metadata.Name), bytes.Compare(a.json, b.json))
}
