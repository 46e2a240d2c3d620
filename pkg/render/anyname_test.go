package render_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/render/rendertest"
)

// Flux applies files of any name, and so does render: in a generated kustomization.yaml, and in one of the repo that names them.
func TestFilesOfAnyName(t *testing.T) {
	dir := t.TempDir()
	if err := rendertest.Write(dir, 1); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(filepath.Join(dir, filepath.FromSlash(rendertest.File(0))))
	own := filepath.Join(folder, "own folder")
	if err := os.Mkdir(own, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		filepath.Join(folder, "my config.yaml"):           "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first, namespace: default}\n",
		filepath.Join(folder, "gr\u00fc\u00dfe+(1).yaml"): "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: second, namespace: default}\n",
		filepath.Join(own, "the third.yaml"):              "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: third, namespace: default}\n",
		filepath.Join(own, "kustomization.yaml"):          "resources:\n- the third.yaml\n",
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	res, err := renderer(t, dir, "").All(t.Context())
	if err != nil || res.Findings != nil {
		t.Fatal(err, res.Findings)
	}
	files := map[string]string{}
	for _, o := range res.Objects {
		files[o.Name] = filepath.Base(filepath.FromSlash(o.Source.File))
	}
	for name, file := range map[string]string{"first": "my config.yaml", "second": "gr\u00fc\u00dfe+(1).yaml", "third": "the third.yaml"} {
		if files[name] != file {
			t.Errorf("%s comes from %q, want %q", name, files[name], file)
		}
	}
}
