package manifests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReplace(t *testing.T) {
	got, err := replace([]byte("image: staging:main\n"), "staging:main", "release:v1")
	if err != nil || string(got) != "image: release:v1\n" {
		t.Errorf("replace = %q, %v", got, err)
	}
	for name, manifest := range map[string]string{"missing": "image: other\n", "twice": "image: staging:main\ninitImage: staging:main\n"} {
		if _, err := replace([]byte(manifest), "staging:main", "release:v1"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestFluxController(t *testing.T) {
	base, module := t.TempDir(), t.TempDir()
	write(t, filepath.Join(base, "kustomization.yaml"), `resources:
- https://example.com/releases/download/v1/x-controller.crds.yaml
- https://example.com/releases/download/v1/x-controller.deployment.yaml
- account.yaml
`)
	write(t, filepath.Join(base, "account.yaml"), object("ServiceAccount", "x-controller"))
	for _, dir := range []string{"crd", "manager"} {
		write(t, filepath.Join(module, "config", dir, "kustomization.yaml"), "resources: [object.yaml]\n")
		write(t, filepath.Join(module, "config", dir, "object.yaml"), object("ConfigMap", dir))
	}
	manifest, err := fluxController(base, "x-controller", module)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"crd", "manager", "x-controller"} {
		if !strings.Contains(string(manifest), "name: "+name+"\n") {
			t.Errorf("%s is not in the manifest:\n%s", name, manifest)
		}
	}
	write(t, filepath.Join(base, "kustomization.yaml"), "resources: [\"https://example.com/other.yaml\"]\n")
	if _, err := fluxController(base, "x-controller", module); err == nil {
		t.Error("an unknown release file gives no error")
	}
}

func TestJoinedPutsCRDsFirst(t *testing.T) {
	got := string(joined([]byte("kind: Namespace\n"), map[string]string{
		"chart/templates/a.yaml":     "kind: Deployment",
		"chart/templates/crd-z.yaml": "---\nkind: CustomResourceDefinition\n",
		"chart/templates/empty.yaml": "\n",
		"chart/templates/NOTES.txt":  "notes",
	}))
	want := "kind: Namespace\n---\nkind: CustomResourceDefinition\n---\nkind: Deployment\n"
	if got != want {
		t.Errorf("joined = %q, want %q", got, want)
	}
}

func object(kind, name string) string {
	return "apiVersion: v1\nkind: " + kind + "\nmetadata:\n  name: " + name + "\n"
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
