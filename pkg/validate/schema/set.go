// Package schema judges objects as an API server would. Kinds with a CRD are judged by its structural schema: unknown fields, defaults,
// list types and CEL rules. Kinds that every cluster has are judged by their Go types. It works in process and offline.
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

// Set is the kinds that are known. Add fills it; after that it is safe for use by several goroutines. A CRD is read and compiled when
// an object first needs it, once.
type Set struct {
	kinds map[schema.GroupKind]*kind
}

// kind is a CRD, and what is made of it.
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

// HasCRD tells whether a CRD makes a kind.
func (s *Set) HasCRD(group, kind string) bool {
	return s.kinds[schema.GroupKind{Group: group, Kind: kind}] != nil
}

// Clone returns a Set that knows the same and can be added to by itself. What is compiled is shared.
func (s *Set) Clone() *Set { return &Set{kinds: maps.Clone(s.kinds)} }

// Add takes the CRDs in a YAML stream, from a place called origin, and returns how many there are; other objects are passed over. The
// first CRD of a kind wins. Errors say which document cannot be read.
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

// AddObject takes a CRD as JSON, such as one that was rendered, and says whether it is one.
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

// addList takes the CRDs of a list, which is what `kubectl get crds -o yaml` prints.
func (s *Set) addList(origin string, document []byte) (added int, err error) {
	var list struct {
		Kind  string           `json:"kind"`
		Items []map[string]any `json:"items"`
	}
	text, err := yaml.YAMLToJSON(document)
	if err != nil || kjson.UnmarshalCaseSensitivePreserveInts(text, &list) != nil {
		return 0, nil //nolint:nilerr // what cannot be read is something else that mentions CRDs
	}
	if list.Kind != "List" && list.Kind != "CustomResourceDefinitionList" {
		return 0, nil
	}
	for _, item := range list.Items {
		if item == nil { // written as null
			continue
		}
		if list.Kind == "CustomResourceDefinitionList" { // whose items need not say what they are
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

// lineEnds are the line ends of other systems. Without them a second reading gives the same text.
var lineEnds = regexp.MustCompile(`\r+\n`)

// Documents splits a YAML stream as kustomize does; a document keeps its comments, and what stands in the line of its separator.
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

// OnlyCRDs is the part of a YAML stream that Add would take. Its documents are as they were: to take a space or a line break off the
// beginning of one makes another document of it.
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

// kindOf is the kind that a CRD defines; an empty one where the document is something else that only mentions CRDs.
func kindOf(document []byte) (schema.GroupKind, error) {
	if bytes.HasPrefix(bytes.TrimLeft(document, "\n"), []byte("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n")) {
		_, group, ok := strings.Cut(onlyLine(document, "\n  name: "), ".")
		if kind := onlyLine(document, "\n    kind: "); ok && group != "" && kind != "" {
			return schema.GroupKind{Group: group, Kind: kind}, nil // reading it will tell whether that is so
		}
	}
	crd, err := decodeCRD(document)
	if err != nil || crd == nil {
		return schema.GroupKind{}, err
	}
	return madeBy(crd), nil
}

// madeBy is the kind that a CRD defines.
func madeBy(crd *apiextensionsv1.CustomResourceDefinition) schema.GroupKind {
	return schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
}

// onlyLine is what stands behind the beginning of the only line that has it; "" where there is none, there are several, or it is more than
// a word. Generated CRDs have their names in such lines; those of others are found by reading them.
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

// decodeCRD reads a CRD as the API server has it after kubectl, Helm, Flux or clusterctl applied it; nil where the document is something
// else. All of them send the document as JSON, without a look at the types of the fields: a plain y is true, also as a pattern, and the API
// server then takes no bool for a text. The API server does not fold the case of fields. So yaml.Unmarshal, which does both, is wrong here.
func decodeCRD(document []byte) (*apiextensionsv1.CustomResourceDefinition, error) {
	text, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, crd); err != nil {
		var is metav1.TypeMeta
		if kjson.UnmarshalCaseSensitivePreserveInts(text, &is) == nil && is.Kind != crdKind {
			return nil, nil // whose fields mean something else
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

// Namespaced tells whether objects of a kind are in a namespace; false for a kind that is not known.
func (s *Set) Namespaced(gvk schema.GroupVersionKind) bool {
	if known := s.kinds[gvk.GroupKind()]; known != nil {
		crd, err := known.read()
		return err == nil && crd.Spec.Scope == apiextensionsv1.NamespaceScoped
	}
	builtIn, err := types()
	return err == nil && builtIn.Recognizes(gvk) && !clusterScoped[gvk.GroupKind()]
}
