// Package schema checks objects as an API server would. For kinds with a CRD it uses the structural schema: unknown fields, defaults, list
// types and CEL rules. For the kinds of every cluster it uses their Go types. It works in this process and offline.
package schema

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Set has the known kinds. Add fills it. After that, several goroutines may use it. A CRD is read and compiled once, when an object first
// needs it.
type Set struct {
	kinds map[schema.GroupKind]*kind
}

// kind is a CRD with its compiled versions.
type kind struct {
	is       schema.GroupKind
	origin   string
	document []byte

	decode sync.Once
	crd    *apiextensionsv1.CustomResourceDefinition
	broken error

	mu       sync.Mutex
	versions map[string]*version
}

// crdKind is the kind of CRDs.
const crdKind = "CustomResourceDefinition"

// NewSet returns a Set that knows the kinds of every cluster, and no CRD.
func NewSet() *Set { return &Set{kinds: map[schema.GroupKind]*kind{}} }

// HasCRD tells whether a CRD of the Set defines a kind.
func (s *Set) HasCRD(group, kind string) bool {
	return s.kinds[schema.GroupKind{Group: group, Kind: kind}] != nil
}

// Clone returns a copy to which CRDs can be added. Both share the compiled CRDs.
func (s *Set) Clone() *Set { return &Set{kinds: maps.Clone(s.kinds)} }

// Add adds the CRDs in a YAML stream and returns their number. It skips other objects. origin names the place of the stream. The first CRD
// of a kind wins. The error says which documents cannot be read.
func (s *Set) Add(origin string, stream []byte) (int, error) {
	var errs []error
	added := 0
	for i, document := range Documents(stream) {
		if !isCRD(document) {
			continue
		}
		group, err := kindOf(document)
		if err != nil {
			errs = append(errs, fmt.Errorf("read document %d of %s: %w", i+1, origin, err))
			continue
		}
		if group.Kind == "" {
			n, err := s.addList(origin, document)
			added += n
			if err != nil {
				errs = append(errs, fmt.Errorf("read document %d of %s: %w", i+1, origin, err))
			}
			continue
		}
		added++
		if s.kinds[group] == nil {
			s.kinds[group] = &kind{is: group, origin: origin, document: document, versions: map[string]*version{}}
		}
	}
	return added, errors.Join(errs...)
}

// AddObject adds a CRD in JSON, such as a rendered one. It returns false if the object is no CRD.
func (s *Set) AddObject(origin string, object []byte) bool {
	var crd struct {
		metav1.TypeMeta
		Spec struct {
			Group string `json:"group"`
			Names struct {
				Kind string `json:"kind"`
			} `json:"names"`
		} `json:"spec"`
	}
	if kjson.UnmarshalCaseSensitivePreserveInts(object, &crd) != nil || crd.APIVersion != "apiextensions.k8s.io/v1" || crd.Kind != crdKind {
		return false
	}
	is := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
	if s.kinds[is] == nil {
		s.kinds[is] = &kind{is: is, origin: origin, document: object, versions: map[string]*version{}}
	}
	return true
}

// addList adds the CRDs of a List, such as the output of `kubectl get crds -o yaml`.
func (s *Set) addList(origin string, document []byte) (added int, err error) {
	var list struct {
		Kind  string           `json:"kind"`
		Items []map[string]any `json:"items"`
	}
	text, err := yaml.YAMLToJSON(document)
	if err != nil || kjson.UnmarshalCaseSensitivePreserveInts(text, &list) != nil {
		return 0, nil //nolint:nilerr // a document that cannot be read only mentions CRDs
	}
	if list.Kind != "List" && list.Kind != "CustomResourceDefinitionList" {
		return 0, nil
	}
	for _, item := range list.Items {
		if item == nil { // it is null
			continue
		}
		if list.Kind == "CustomResourceDefinitionList" { // its items may lack apiVersion and kind
			item["apiVersion"], item["kind"] = "apiextensions.k8s.io/v1", crdKind
		}
		if item["kind"] != crdKind {
			continue
		}
		text, err := json.Marshal(item)
		if err != nil {
			return added, err
		}
		n, err := s.Add(origin, text)
		if added += n; err != nil {
			return added, err
		}
	}
	return added, nil
}

// lineEnds are the line ends of other systems. They are removed so that a second reading gives the same text.
var lineEnds = regexp.MustCompile(`\r+\n`)

// Documents splits a YAML stream as kustomize does. A document keeps its comments and the text in the line of its separator.
func Documents(stream []byte) [][]byte {
	stream = bytes.TrimPrefix(stream, []byte("\ufeff"))
	if bytes.Contains(stream, []byte("\r\n")) {
		stream = lineEnds.ReplaceAll(stream, []byte("\n"))
	}
	var out [][]byte
	for document := range bytes.SplitSeq(append([]byte("\n"), stream...), []byte("\n---")) {
		out = append(out, document)
	}
	return out
}

// OnlyCRDs returns the part of a YAML stream that Add would use. It keeps white space at the beginning of a document, because removing it
// would change the document's meaning.
func OnlyCRDs(stream []byte) []byte {
	var out bytes.Buffer
	for _, document := range Documents(stream) {
		if isCRD(document) {
			out.WriteString("---")
			out.Write(bytes.TrimRight(document, "\r\n"))
			out.WriteString("\n")
		}
	}
	return out.Bytes()
}

func isCRD(document []byte) bool {
	return bytes.Contains(document, []byte(crdKind)) && bytes.Contains(document, []byte("apiextensions.k8s.io/"))
}

// kindOf returns the kind that a CRD defines. It is empty if the document only mentions CRDs.
func kindOf(document []byte) (schema.GroupKind, error) {
	if bytes.HasPrefix(bytes.TrimLeft(document, "\n"), []byte("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n")) {
		_, group, ok := strings.Cut(onlyLine(document, "\n  name: "), ".")
		if kind := onlyLine(document, "\n    kind: "); ok && group != "" && kind != "" {
			return schema.GroupKind{Group: group, Kind: kind}, nil // read checks this later
		}
	}
	crd, err := decodeCRD(document)
	if err != nil || crd == nil {
		return schema.GroupKind{}, err
	}
	return madeBy(crd), nil
}

// madeBy returns the kind that a CRD defines.
func madeBy(crd *apiextensionsv1.CustomResourceDefinition) schema.GroupKind {
	return schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
}

// onlyLine returns the word after begins in the only line that has begins. It returns "" if there is no such line or several, or if more
// than a word follows. Generated CRDs have their names in such lines. Other CRDs are decoded.
func onlyLine(document []byte, begins string) string {
	at := bytes.Index(document, []byte(begins))
	if at < 0 {
		return ""
	}
	rest := document[at+len(begins):]
	if bytes.Contains(rest, []byte(begins)) {
		return ""
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	word := strings.Trim(string(bytes.TrimSpace(line)), `"'`)
	if strings.ContainsAny(word, " \t#&*!{}[]:'\"") {
		return ""
	}
	return word
}

// decodeCRD reads a CRD as the API server gets it from kubectl, Helm, Flux or clusterctl. It returns nil if the document is no CRD. These
// programs convert the document to JSON without the types of the fields: a plain y becomes true, also in a text field such as pattern, and
// the API server then refuses it. The API server also does not fold the case of field names. yaml.Unmarshal differs in both, so decodeCRD
// cannot use it.
func decodeCRD(document []byte) (*apiextensionsv1.CustomResourceDefinition, error) {
	text, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, crd); err != nil {
		var is metav1.TypeMeta
		if kjson.UnmarshalCaseSensitivePreserveInts(text, &is) == nil && is.Kind != crdKind {
			return nil, nil // the fields of an older version mean something else
		}
		return nil, err
	}
	if crd.Kind != crdKind {
		return nil, nil
	}
	if crd.APIVersion != "apiextensions.k8s.io/v1" {
		return nil, fmt.Errorf("%s is no version of CRDs that is served", crd.APIVersion)
	}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
	return crd, nil
}

// Knows tells whether there is a CRD for the kind.
func (s *Set) Knows(group, kind string) bool {
	return s.kinds[schema.GroupKind{Group: group, Kind: kind}] != nil
}

// Prepare compiles the CRDs of kinds side by side, and skips unknown kinds. Calling it is optional: Check compiles the CRDs that it needs.
func (s *Set) Prepare(ctx context.Context, kinds []schema.GroupVersionKind) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, k := range kinds {
		if known := s.kinds[k.GroupKind()]; known != nil {
			group.Go(func() error {
				if ctx.Err() == nil {
					known.prepare(ctx, k.Version)
				}
				return nil
			})
		}
	}
	_ = group.Wait() // no function returns an error
}

// Namespaced tells whether a kind is namespaced. It returns false for an unknown kind.
func (s *Set) Namespaced(gvk schema.GroupVersionKind) bool {
	if known := s.kinds[gvk.GroupKind()]; known != nil {
		crd, err := known.read()
		return err == nil && crd.Spec.Scope == apiextensionsv1.NamespaceScoped
	}
	builtIn, err := types()
	return err == nil && builtIn.Recognizes(gvk) && !clusterScoped[gvk.GroupKind()]
}
