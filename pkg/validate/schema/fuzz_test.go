package schema

import (
	"bufio"
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const smallCRD = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: as.b\nspec:\n  group: b\n  names:\n    " +
	"kind: A\n    plural: as\n  scope: Cluster\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema: " +
	"{openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}\n"

// hostileCRDs are streams that a reader of lines may take for others.
var hostileCRDs = []string{
	smallCRD,
	strings.Replace(smallCRD, "    kind: A\n", "    kind: \"A\" # x\n", 1) + "---\n" + smallCRD,
	"# apiextensions.k8s.io/v1 CustomResourceDefinition\r\n---\r\n" + smallCRD + "--- \n{}\n",
	"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinitionList\nitems: [null, {}, {spec: null}]\n",
	"  a: b\n" + smallCRD,
	"---  a: b\n" + smallCRD,
	"---\r" + smallCRD,
	"---\r  a: b\n" + smallCRD,
	"\ufeff" + smallCRD,
	"---\n  " + strings.ReplaceAll(smallCRD, "\n", "\n  "),
	strings.ReplaceAll(smallCRD, "\n", "\r"),
	strings.ReplaceAll(smallCRD, "\n", "\r\r\n") + "---\r\n",
	"--- # apiextensions.k8s.io/ CustomResourceDefinition\n" + smallCRD + "...\n---\n%YAML 1.2\n---\n" + smallCRD,
	"kind: A\nspec: CustomResourceDefinition of apiextensions.k8s.io/v1\n",
	strings.Replace(smallCRD, "metadata:\n  name: as.b\n", "metadata: {name: as.b}\n", 1) + "  x:\n  name: cs.d\n",
	smallCRD + "  x: |\n---\n" + smallCRD,
}

// With any stream of CRDs: Add finds every CRD that apimachinery's reader finds. A CRD's quick facts are the same as those of a full
// reading, or the CRD is reported as broken. The stored form of a stream gives the same as the stream.
func FuzzCRDs(f *testing.F) {
	for _, stream := range hostileCRDs {
		f.Add([]byte(stream))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		s, kept := NewSet(), NewSet()
		added, err := s.Add("stream", stream)
		if added < len(s.kinds) {
			t.Errorf("%d CRDs of %d kinds", added, len(s.kinds))
		}
		broken := err != nil
		for is, k := range s.kinds {
			crd, err := k.read()
			if broken = broken || err != nil; err == nil && madeBy(crd) != is {
				t.Errorf("known as %s, read as %s", is, madeBy(crd))
			}
		}
		again, keptErr := kept.Add("kept", OnlyCRDs(stream))
		if again != added || (keptErr == nil) != (err == nil) || !sameKinds(s, kept) {
			t.Errorf("%d CRDs (%v): %v\nof those that are kept %d (%v): %v", added, err, kindsOf(s), again, keptErr, kindsOf(kept))
		}
		if broken || onItsLine.Match(stream) {
			return
		}
		for _, crd := range read(stream) {
			if !s.HasCRD(crd.Group, crd.Kind) {
				t.Errorf("missed %s", crd)
			}
		}
	})
}

// onItsLine finds a separator with something behind it, which apimachinery's reader takes for a line of the document before it.
var onItsLine = regexp.MustCompile(`(?m)^---[^\r\n]`)

// read are the kinds that the CRDs in a stream make, by apimachinery's reader.
func read(stream []byte) (all []kschema.GroupKind) {
	reader := kyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(stream)))
	for {
		document, err := reader.Read()
		if err != nil {
			return all
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		served := yaml.Unmarshal(document, crd) == nil && crd.Kind == crdKind && crd.APIVersion == "apiextensions.k8s.io/v1"
		if served && crd.Spec.Names.Kind != "" && crd.Name == crd.Spec.Names.Plural+"."+crd.Spec.Group && isCRD(document) {
			all = append(all, madeBy(crd))
		}
	}
}

func sameKinds(a, b *Set) bool {
	return slices.Equal(kindsOf(a), kindsOf(b))
}

func kindsOf(s *Set) []kschema.GroupKind {
	return slices.SortedFunc(maps.Keys(s.kinds), func(a, b kschema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
}

// An object that speaks of CRDs, with fields that mean something else, is no CRD that cannot be read.
func TestAddPassesOverWhatSpeaksOfCRDs(t *testing.T) {
	for _, text := range []string{
		"apiVersion: v1\nkind: Thing\nspec: CustomResourceDefinition of apiextensions.k8s.io/v1\n",
		"apiVersion: v1\nkind: Thing\nspec: {group: [CustomResourceDefinition], scope: {a: apiextensions.k8s.io/}}\n",
	} {
		if added, err := NewSet().Add("thing.yaml", []byte(text)); added != 0 || err != nil {
			t.Errorf("%s%d, %v", text, added, err)
		}
	}
}

// A CRD whose lines name another kind than its fields judges no object of that kind. It is broken, and says how.
func TestCRDThatIsTakenForAnother(t *testing.T) {
	s := NewSet()
	text := strings.Replace(smallCRD, "metadata:\n  name: as.b\n", "metadata: {name: as.b}\n", 1) + "  x:\n  name: cs.d\n"
	if _, err := s.Add("a.yaml", []byte(text)); err != nil {
		t.Fatal(err)
	}
	for is := range s.kinds {
		_, err := s.Check(t.Context(), object(t, "apiVersion: "+is.Group+"/v1\nkind: "+is.Kind+"\nmetadata: {name: a}\n"))
		if is.Group != "b" && (err == nil || !strings.Contains(err.Error(), "defines A.b")) {
			t.Errorf("%s: %v", is, err)
		}
	}
}
