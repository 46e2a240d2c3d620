package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// applied is a CRD as the API server has it after kubectl, Helm, Flux or clusterctl applied its text: each of these sends the text as JSON,
// and the API server reads this JSON by its own decoder.
func applied(server runtime.Decoder, document []byte) (*apiextensionsv1.CustomResourceDefinition, error) {
	read := runtime.RawExtension{}
	if err := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(document), 4096).Decode(&read); err != nil {
		return nil, err
	}
	object, _, err := unstructured.UnstructuredJSONScheme.Decode(read.Raw, nil, nil)
	if err != nil {
		return nil, err
	}
	sent, err := runtime.Encode(unstructured.UnstructuredJSONScheme, object)
	if err != nil {
		return nil, err
	}
	got, _, err := server.Decode(sent, nil, nil)
	if err != nil {
		return nil, err
	}
	crd, ok := got.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return nil, fmt.Errorf("it is a %T", got)
	}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
	return crd, nil
}

// asJSON is a CRD in JSON's terms, in which two ways to write one number are the same.
func asJSON(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) map[string]any {
	t.Helper()
	text, err := json.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	return fromJSON(t, text)
}

// scalars are written in all ways that YAML 1.1, YAML 1.2 and Go's libraries read in different ways.
var scalars = []string{
	"y", "Y", "n", "N", "yes", "Yes", "YES", "no", "on", "On", "ON", "off", "true", "True", "TRUE", "false", `"y"`, "'on'", "!!str on",
	"~", "null", "Null", "NULL", "''", "0o17", "017", "0x1F", "0b11", "1_000", "+1", "-0", "1.0", "1.", ".5", "1e3", "1E3", "1e400", "0.1e-3",
	".inf", "-.Inf", ".nan", ".NaN", "9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551616",
	"190:20:30", "2024-01-01", "2024-01-01T00:00:00Z", "!!int \"3\"", "!!float 3", "!!binary aGVsbG8=", "=", "<<", "0.10", "08", "0o8",
	"-", "--", "1__0", "_1", "0x_1", "[on, off]", "{on: off}", "{1: 2}", "{1.5: 2}", "{true: 2, yes: 3}", "{a: 1, a: 2}", "{~: 2}", "{[a]: b}",
	"&x y", "!custom y", "|\n  on\n", "@a", "`a", "%a", "\"\\u2028\"", "\"\\uD800\"", "\"\\x01\"", "a: b",
}

// places are where a scalar can stand in a CRD. "%s" is the scalar.
var places = []string{
	"default: %s", "enum: [%s]", "enum: [a, %s]", "pattern: %s", "required: [%s]", "description: %s", "properties: {%s: {type: string}}",
	"maxLength: %s", "maximum: %s", "format: %s", "type: %s", "nullable: %s", "x-kubernetes-preserve-unknown-fields: %s",
	"x-kubernetes-validations: [{rule: %s}]", "x-kubernetes-validations: [{rule: 'true', message: %s}]", "example: %s",
	"Default: %s", "DEFAULT: %s", "default: a, default: %s", "unknown: %s", "additionalProperties: %s", "items: %s",
	"x-kubernetes-list-map-keys: [%s]", "externalDocs: {url: %s}",
}

// A CRD means what it means to the API server it is applied to, in whatever way its scalars are written; one that the API server cannot
// read is broken.
func TestCRDsAreReadAsTheAPIServerReadsThem(t *testing.T) {
	const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.example.com}
spec:
  group: example.com
  names: {kind: Shop, plural: shops, singular: shop, listKind: ShopList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, properties: {spec: {PLACE}}}
`
	known := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	server := serializer.NewCodecFactory(known).UniversalDeserializer()
	differ := 0
	for _, place := range places {
		for _, scalar := range scalars {
			written := strings.Replace(place, "%s", scalar, 1)
			document := []byte(strings.Replace(crd, "PLACE", written, 1))
			want, wantErr := applied(server, document)
			got, err := decodeCRD(document)
			if (err != nil || got == nil) != (wantErr != nil) {
				differ++
				t.Errorf("%s: got %v and %v, the API server says %v", written, got != nil, err, wantErr)
				continue
			}
			if err != nil {
				continue
			}
			if is, ought := asJSON(t, got), asJSON(t, want); !reflect.DeepEqual(is, ought) {
				differ++
				t.Errorf("%s:\n got %v\nwant %v", written, is, ought)
			}
		}
	}
	t.Logf("%d of %d differ", differ, len(places)*len(scalars))
}

// A list of CRDs, which is what kubectl prints, has the CRDs that it would have as documents of their own: with numbers that no float
// holds.
func TestCRDsOfAListAreThoseOfDocuments(t *testing.T) {
	const item = `apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata: {name: shops.example.com}
  spec:
    group: example.com
    names: {kind: Shop, plural: shops, singular: shop, listKind: ShopList}
    scope: Namespaced
    versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema: {type: object, properties: {a: {type: integer, enum: [9007199254740993]}, b: {type: boolean, default: y}}}
`
	s := NewSet()
	if n, err := s.Add("list.yaml", []byte("apiVersion: v1\nkind: List\nitems:\n- "+item)); n != 1 || err != nil {
		t.Fatalf("%d CRDs, %v", n, err)
	}
	for a, wrong := range map[int64]int{9007199254740993: 0, 9007199254740992: 1} {
		shop := map[string]any{"apiVersion": "example.com/v1", "kind": "Shop", "metadata": map[string]any{"name": "x"}, "a": a}
		problems, err := s.Check(t.Context(), shop)
		if err != nil || len(problems) != wrong {
			t.Errorf("%d: %v, %v", a, problems, err)
		}
	}
}
