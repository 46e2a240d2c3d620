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

// Owner is the Flux object that applies other objects: a Kustomization, or a HelmRelease.
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
	// Source is the document that declares the object. For an object of a chart it is the document of the HelmRelease.
	Source Source
	// Template is the file of the chart that makes the object. It is "" for an object that the repo itself has.
	Template string
	// Owner applies the object.
	Owner Owner
	// GitSource is the source that Owner follows; flux-system for the fleet's own branch. Its content is rendered from the files of the repo,
	// whatever revision it follows.
	GitSource string
	// ManagementCluster is the cluster whose Flux applies the object. Environment and Cluster (a workload cluster) are the ones whose folder
	// declares the object, or "".
	ManagementCluster, Environment, Cluster string
	// Targets are the workload clusters that the object is applied to, through their kubeconfigs or by their own Flux. Without targets the
	// object is applied to the management cluster.
	Targets []string
	// Suspended says that Owner, or a Flux object that applies Owner, is suspended: Flux does not apply the object until it is resumed.
	Suspended bool
}

// Kustomization is a Flux Kustomization that was rendered.
type Kustomization struct {
	Owner
	// Source is the document that declares it. It is empty for a management cluster's own Kustomization that the repo does not have yet.
	Source Source
	// Path is the folder that it applies.
	Path                                    string
	GitSource                               string
	ManagementCluster, Environment, Cluster string
	Targets                                 []string
	Suspended                               bool
	// Incomplete says that something of it could not be built, and a finding says why. The result lacks objects of it. Flux applies nothing
	// of such a Kustomization, and deletes nothing that it applied before.
	Incomplete bool
	// Unread are the documents whose objects the result lacks because they cannot be read; without a line, whole files. Unbuilt are the
	// folders and files of which the result may lack any objects.
	Unread  []Source
	Unbuilt []string
}

// Release is a HelmRelease that was found.
type Release struct {
	Owner
	Object *Object
	// Chart is the folder of its chart in the repo, or "" if the chart is not in the repo.
	Chart string
	// Outside is the release's chart if the chart is in a registry or a repository of charts. It is nil without Options.Outside.
	Outside *OutsideChart
	// ReleaseName and ReleaseNamespace are the release's name and namespace as Helm sees them.
	ReleaseName, ReleaseNamespace string
	// Rendered says that the result has the objects of the release. If Rendered is false, a finding says why.
	Rendered bool
}

// YAML returns the object as a YAML document without a separator, with sorted keys.
func (o *Object) YAML() []byte { return AppendYAML(nil, o.JSON) }

// IsKustomization tells whether the object is a Kustomization of Flux, and not one of kustomize or of somebody else.
func (o *Object) IsKustomization() bool {
	return o.Kind == KindKustomization && strings.HasPrefix(o.APIVersion, "kustomize.toolkit.fluxcd.io/")
}

// ID is "Kind namespace/name", or "Kind name" for cluster-scoped kinds.
func (o *Object) ID() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// identity has the fields that identify an object.
type identity struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
}

// content is an object of which the owner and the clusters are not known yet.
type content struct {
	identity
	json     []byte
	source   Source
	template string
	// before is what the object may have had different when the patches of its Flux Kustomization looked for their targets.
	before changed
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

// noObject describes why content is no object: the type of the content, or of a field that identifies an object.
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

// compareContents orders objects by identity.
func compareContents(a, b *content) int {
	return cmp.Or(
		cmp.Compare(a.Metadata.Namespace, b.Metadata.Namespace), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Metadata.Name, b.Metadata.Name), bytes.Compare(a.json, b.json))
}
