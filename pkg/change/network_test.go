package change

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// What goes into the fleet repo is read whole or not at all, also a file that is no manifest: a kustomization.yaml may refer to it.
func TestReadLargeManifests(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	large := func(of string) string { return of + strings.Repeat("#", maxManifest+1-len(of)) }
	for name, tc := range map[string]struct {
		files   map[string]string
		refused string
		want    int
	}{
		"a manifest at the limit": {files: map[string]string{"a.yaml": large(object)[:maxManifest]}, want: 1},
		"a manifest":              {files: map[string]string{"a.yaml": large(object)}, refused: "a.yaml"},
		"a file beside manifests": {files: map[string]string{"a.yaml": object, "picture.png": large("")}, want: 1},
		"a file that a kustomization may name": {
			files: map[string]string{"kustomization.yaml": "resources: []\n", "program": large("")}, refused: "program",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range tc.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := ReadManifests(dir, "calico", nil)
			if tc.refused == "" {
				if err != nil || len(got) != tc.want {
					t.Errorf("%d files, %v", len(got), err)
				}
				return
			}
			if !errors.Is(err, within.ErrTooLarge) || !strings.Contains(err.Error(), tc.refused+": too large: it has more than 8 MiB") ||
				diag.Hint(err) == "" {
				t.Errorf("%d files, error %v with the hint %q", len(got), err, diag.Hint(err))
			}
		})
	}
	for size, refused := range map[int]bool{maxManifest: false, maxManifest + 1: true} {
		content := large(object)[:size]
		file := filepath.Join(t.TempDir(), "a.yaml")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, from := range []string{file, "-"} {
			got, err := ReadManifests(from, "calico", strings.NewReader(content))
			if errors.Is(err, within.ErrTooLarge) != refused || err == nil && len(got[0].Content) != size {
				t.Errorf("%d bytes from %s: %v", size, from, err)
			}
		}
	}
}
