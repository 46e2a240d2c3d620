package releases

import (
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/capi/releases/releasestest"
)

// windows returns all parts of value with this number of bytes.
func windows(value string, size int) []string {
	var all []string
	for i := 0; i+size <= len(value); i++ {
		all = append(all, value[i:i+size])
	}
	return all
}

// Values that make the YAML of components invalid appear in no error, not even in part. The error names their variables.
func TestErrorsOfParsersHideValues(t *testing.T) {
	const size = 8
	canary := "Zk8#q2LwP0vXr7Tn"
	aws := Provider{Name: "aws", Type: Infrastructure, Version: "v1.14.2"}
	for name, value := range map[string]string{
		"a line break":       canary + "\n" + canary,
		"lines":              "[default]\n" + canary + " = " + canary + "\n",
		"quotes":             canary + `"` + canary + `\` + canary,
		"a quote":            `"` + canary,
		"a quote of its own": canary + "'" + canary,
		"a tab":              "\t" + canary + "\t: [",
		"long":               `{` + strings.Repeat(canary, 100),
		"no character":       "\x00" + canary,
		"not UTF-8":          "\xff" + canary,
		"a key":              "x: " + canary + ": " + canary,
		"an anchor":          "*" + canary,
		"a tag":              "!!" + canary + " x",
		"a document":         "a\n---\n" + canary + ": [",
		"carriage returns":   canary + "\r\n" + canary + "\r\n",
		"a key given twice":  "a\n  user: " + canary + "\n  user: " + canary,
	} {
		for in, text := range map[string]string{
			"plain":  "stringData:\n  user: ${TEST_USER}\n  password: ${TEST_PASSWORD}\n",
			"quoted": "stringData:\n  password: \"${TEST_PASSWORD}\"\n",
			"single": "stringData:\n  password: '${TEST_PASSWORD}'\n",
			"file":   "stringData:\n  credentials.yaml: |-\n    login: 'admin:${TEST_PASSWORD}'\n",
			"block":  "stringData:\n  credentials.yaml: |-\n    user: '${TEST_USER}'\n    password: '${TEST_PASSWORD}'\n",
		} {
			root := releasestest.Repository(t)
			releasestest.WriteFile(t, filepath.Join(root, "infrastructure-aws", "v1.14.2", "infrastructure-components.yaml"),
				strings.ReplaceAll(releasestest.Components, "NAME", "infrastructureaws")+
					"---\napiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: infrastructureaws-system}\n"+text)
			source := newTestSource(t, SourceOptions{Repository: root, Variables: map[string]string{
				"TEST_USER": "admin", "TEST_PASSWORD": value,
			}})
			for by, read := range map[string]func() error{
				"prefetch": func() error { return source.Prefetch(t.Context(), []Provider{aws}) },
				"render":   func() error { _, err := source.Render(t.Context(), []Provider{aws}); return err },
				"values":   func() error { _, err := source.FromVariables(t.Context(), aws, "x"); return err },
			} {
				err := read()
				if err == nil {
					if in == "file" && name == "a quote of its own" {
						t.Errorf("%s: the file in the Secret is no YAML, and nobody says so", by)
					}
					continue
				}
				for _, part := range windows(canary, size) {
					if strings.Contains(err.Error(), part) {
						t.Errorf("%s, %s, %s: %v", name, in, by, err)
						break
					}
				}
				if !strings.Contains(err.Error(), "TEST_PASSWORD") {
					t.Errorf("%s, %s, %s: the error does not name the variable: %v", name, in, by, err)
				}
			}
		}
	}
}

// A value within quotes stays unchanged, whatever characters it has.
func TestValuesWithinQuotes(t *testing.T) {
	for _, value := range []string{
		"plain", "it's", `say "yes"`, `DOMAIN\user`, "a: b # c", "$HOME ${HOME} $$", "{[*&!|>%@`", "ü", `'`, `"`, `\`, `a\nb`,
	} {
		root := releasestest.Repository(t)
		releasestest.WriteFile(t, filepath.Join(root, "infrastructure-aws", "v1.14.2", "infrastructure-components.yaml"),
			strings.ReplaceAll(releasestest.Components, "NAME", "infrastructureaws")+`---
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: infrastructureaws-system}
stringData:
  double: "${TEST_PASSWORD}"
  default: "${TEST_PASSWORD:=none}"
  single: '${TEST_PASSWORD}'
  unset: '${TEST_UNSET:=none}'
  credentials.yaml: |-
    password: '${TEST_PASSWORD}'
`)
		source := newTestSource(t, SourceOptions{Repository: root, Variables: map[string]string{"TEST_PASSWORD": value}})
		objects, err := source.FromVariables(t.Context(), Provider{Name: "aws", Type: Infrastructure, Version: "v1.14.2"}, "x")
		if err != nil {
			t.Errorf("%q: %v", value, err)
			continue
		}
		texts, _, err := unstructured.NestedStringMap(objects[len(objects)-1].Object, "stringData")
		if err != nil {
			t.Fatal(err)
		}
		file := struct{ Password string }{}
		if err := yaml.Unmarshal([]byte(texts["credentials.yaml"]), &file); err != nil {
			t.Fatal(err)
		}
		texts["file"] = file.Password
		for _, at := range []string{"double", "default", "single", "file"} {
			if texts[at] != value || texts["unset"] != "none" {
				t.Errorf("%q, %s: %q", value, at, texts)
			}
		}
	}
}
