package kube

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseYAML(t *testing.T) {
	objects, err := ParseYAML([]byte(`# a comment only
---
apiVersion: v1
kind: Namespace
metadata: {name: a}
---
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: a}}
- {apiVersion: v1, kind: Secret, metadata: {name: c, namespace: a}}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, obj := range objects {
		got = append(got, RefOf(obj).String())
	}
	if want := "Namespace a,ConfigMap a/b,Secret a/c"; strings.Join(got, ",") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestParseYAMLKeepsIntegers(t *testing.T) {
	objects, err := ParseYAML([]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, generation: 3}"))
	if err != nil {
		t.Fatal(err)
	}
	if got := objects[0].GetGeneration(); got != 3 {
		t.Errorf("generation %d, want 3", got)
	}
}

func TestParseYAMLErrors(t *testing.T) {
	for _, bad := range []string{
		"kind: Namespace\nmetadata: {name: a}",
		"apiVersion: v1\nkind: Namespace",
		"apiVersion: v1\nkind: List\nitems: [{kind: Secret}]",
		"{",
		"- a",
	} {
		if objects, err := ParseYAML([]byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: ok}\n---\n" + bad)); err == nil {
			t.Errorf("%q gave %v", bad, objects)
		} else if !strings.Contains(err.Error(), "document 2") {
			t.Errorf("%q: %v does not say which document", bad, err)
		}
	}
}

func TestStagesOf(t *testing.T) {
	objects, err := ParseYAML([]byte(`
{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: issuer, namespace: a}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: hook}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: deployment, namespace: a}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: gateway, namespace: a}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: role}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: crd}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: namespace}}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"namespace", "crd", "deployment role", "hook", "issuer gateway"}
	for n, stage := range stagesOf(objects) {
		var names []string
		for _, i := range stage.indices {
			names = append(names, objects[i].GetName())
		}
		if got := strings.Join(names, " "); got != want[n] {
			t.Errorf("stage %d (%s) has %q, want %q", n, stage.name, got, want[n])
		}
	}
}

// An object is written, and read again as it was, whatever characters its texts have.
func TestYAMLOfAnyText(t *testing.T) {
	texts := []string{"\U0001f600", "\U0010ffff", "a\n---\nb", " \x7f\n\x1b[2J ", "##vso", "~", "y", "0o7"}
	for r := range rune(0x10000) {
		if r < 0x100 || r >= 0x2000 && r < 0x2100 || r >= 0xfff0 {
			texts = append(texts, "a"+string(r)+"b")
		}
	}
	for _, text := range texts {
		object := map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "a", "annotations": map[string]any{text: text}}, "n": int64(9007199254740993),
		}
		content, err := YAML(object)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		read, err := ParseYAML(content)
		if err != nil || len(read) != 1 || !reflect.DeepEqual(read[0].Object, object) {
			t.Errorf("%q: %v from %q, %v", text, read, content, err)
		}
	}
}
