package render

import (
	"bytes"
	"encoding/json"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/kustomize"
	"github.com/fluxcd/pkg/sourceignore"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/provider"
)

// Whatever stands in an object and in the variables of a Flux Kustomization: they are filled in as Flux does it, by its own function.
func FuzzSubstitute(f *testing.F) {
	for _, text := range []string{
		"${cluster_name}", "${region:=eu-central-1} ${cluster_name:0:3} ${cluster_name^^}", "$${kept} $cluster_name ${", "${#cluster_name}",
		"a: ${cluster_name}\n", "'${cluster_name}'",
		"${cluster_name/a/b} ${unset}", "${cluster_name:-${region}}", "%{${cluster_name}}", "${cluster_name:999999999999999999999}",
		"\\${cluster_name}", "${1a}", "",
	} {
		f.Add(text, "cluster_name", "shop-1", false)
		f.Add(text, "region", "a\nb: c # d", true)
	}
	f.Add("${a}", "a", "'", false)
	f.Add("${a}", "not-a-name", "x", false)
	f.Add("${a}", "a", "1e3", true)
	factory := provider.NewDefaultDepProvider().GetResourceFactory()
	f.Fuzz(func(t *testing.T, text, name, value string, disabled bool) {
		fields := map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
				"name":        "a",
				"annotations": map[string]any{substituteKey: map[bool]string{true: "disabled", false: "enabled"}[disabled]},
			},
			"data": map[string]any{"text": text, "more": "x" + text},
		}
		raw, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		c, err := newContent(raw)
		if err != nil {
			t.Fatal(err)
		}
		v := &variables{values: map[string]string{name: strings.ReplaceAll(value, "\n", "")}}
		got, err := v.apply(c)
		resource, wantErr := factory.FromBytes(raw)
		if wantErr != nil {
			return // nor would kustomize have made it
		}
		owner := unstructured.Unstructured{
			Object: map[string]any{"spec": map[string]any{"postBuild": map[string]any{"substitute": map[string]any{name: value}}}},
		}
		want, wantErr := kustomize.SubstituteVariables(t.Context(), nil, owner, resource, kustomize.SubstituteWithDryRun(true))
		if !variableName().MatchString(name) {
			return // the one refuses it here, the other when the object is filled in
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("the error is %v, that of Flux %v", err, wantErr)
		}
		if err != nil {
			return
		}
		if want == nil { // disabled
			if got != c {
				t.Errorf("it was changed to %s", got.json)
			}
			return
		}
		wanted, err := want.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(decoded(t, wanted), decoded(t, got.json)); diff != "" {
			t.Errorf("(-Flux +fleetctl)\n%s", diff)
		}
	})
}

func decoded(t *testing.T, text []byte) (fields map[string]any) {
	t.Helper()
	if err := utiljson.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

// With any .sourceignore, this package leaves out the same files as source-controller's own library.
func FuzzSourceIgnore(f *testing.F) {
	for _, text := range []string{
		"", "/providers/*/c.yaml\n!docs/*.png\nsecret/\n", "# all\n/*\n!/providers\n", "**/b/**\n", "[a-\n", "\\!a\n a \n",
		"*.yaml\r\n!a.yaml\r\n", "!.git\n", "a/**/b\n/\n//\n", "\x00\n", "[!a]*\n?\n",
	} {
		f.Add([]byte(text), "providers/aws/v1/c.yaml")
		f.Add([]byte(text), "docs/a.png")
	}
	f.Fuzz(func(t *testing.T, text []byte, name string) {
		if name == "" || name != path.Clean(name) || path.IsAbs(name) || strings.HasPrefix(name, "..") || name == "." {
			return // no name of a file in a repo
		}
		r := &visible{all: fstest.MapFS{sourceignore.IgnoreFile: {Data: text}}}
		matcher := sourceignore.NewDefaultMatcher(sourceignore.ReadPatterns(bytes.NewReader(text), nil), nil)
		for _, folder := range []bool{false, true} {
			if got, want := r.ignored(name, folder), matcher.Match(strings.Split(name, "/"), folder); got != want {
				t.Errorf("%q, folder %t, is ignored: %t; source-controller says %t", name, folder, got, want)
			}
		}
	})
}
