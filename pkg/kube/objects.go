package kube

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/plain"
)

var crdGroupKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// YAML returns an object as YAML that ParseYAML reads, whatever characters its texts contain. The YAML library writes some control
// characters only if it reads them as escapes: one such character in an annotation would keep the object from being written.
func YAML(object map[string]any) ([]byte, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return sigsyaml.JSONToYAML(plain.JSON(text))
}

// ParseYAML returns the objects of a multi-document manifest in YAML or JSON. It flattens lists and drops empty documents. It returns an
// error with the document's number if a document lacks apiVersion, kind or name.
func ParseYAML(manifest []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	var objects []*unstructured.Unstructured
	for n := 1; ; n++ {
		var document runtime.RawExtension
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read document %d: %w", n, err)
		}
		if len(document.Raw) == 0 {
			continue
		}
		var content map[string]any
		if err := json.Unmarshal(document.Raw, &content); err != nil { // apimachinery's json keeps integers
			return nil, fmt.Errorf("read document %d: %w", n, err)
		}
		if len(content) == 0 {
			continue
		}
		flat, err := flatten(&unstructured.Unstructured{Object: content})
		if err != nil {
			return nil, fmt.Errorf("read document %d: %w", n, err)
		}
		objects = append(objects, flat...)
	}
}

// AddLabels adds labels to obj. It replaces labels of the same name.
func AddLabels(obj *unstructured.Unstructured, labels map[string]string) {
	all := obj.GetLabels() // GetLabels returns a copy, or nil
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, labels)
	obj.SetLabels(all)
}

// AddAnnotations adds annotations to obj. It replaces annotations of the same name.
func AddAnnotations(obj *unstructured.Unstructured, annotations map[string]string) {
	all := obj.GetAnnotations() // GetAnnotations returns a copy, or nil
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, annotations)
	obj.SetAnnotations(all)
}

// flatten returns obj, or the items of obj if it is a list.
func flatten(obj *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if obj.GetAPIVersion() == "" || obj.GetKind() == "" {
		return nil, errors.New("apiVersion or kind is missing")
	}
	if !obj.IsList() {
		if obj.GetName() == "" {
			return nil, fmt.Errorf("%s has no name", obj.GetKind())
		}
		return []*unstructured.Unstructured{obj}, nil
	}
	var objects []*unstructured.Unstructured
	err := obj.EachListItem(func(item runtime.Object) error {
		u, ok := item.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("unexpected list item %T", item)
		}
		flat, err := flatten(u)
		objects = append(objects, flat...)
		return err
	})
	return objects, err
}

// Ref identifies an object.
type Ref struct {
	schema.GroupVersionKind
	Key
}

// RefOf returns the Ref of obj. obj must have apiVersion and kind.
func RefOf(obj *unstructured.Unstructured) Ref {
	return Ref{GroupVersionKind: obj.GroupVersionKind(), Key: Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
}

// String returns "Kind namespace/name", or "Kind name" for a cluster-scoped object.
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// isBuiltIn tells whether the API server serves the group without a CRD.
func isBuiltIn(group string) bool {
	return clientgoscheme.Scheme.IsGroupRegistered(group) || group == crdGroupKind.Group
}

// IsCustom tells whether obj is a custom resource. It can be applied only after its CRD, and perhaps after its webhook answers.
func IsCustom(obj *unstructured.Unstructured) bool { return !isBuiltIn(obj.GroupVersionKind().Group) }

// Pointers returns pointers to objects, in their order.
func Pointers(objects []unstructured.Unstructured) []*unstructured.Unstructured {
	out := make([]*unstructured.Unstructured, 0, len(objects))
	for i := range objects {
		out = append(out, &objects[i])
	}
	return out
}

// StorageVersion returns the version in which the API server stores the objects of a CRD, or "" if the CRD names none.
func StorageVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}
