package components

import (
	"path/filepath"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/bundle"
)

// The newest Flux of a bundle is written into fleet.yaml. A folder in the bundle whose name is no version does not count.
func TestFluxVersionOfABundle(t *testing.T) {
	for name, tc := range map[string]struct {
		versions []string
		want     string
	}{
		"one":            {[]string{"v2.8.0"}, "v2.8.0"},
		"by number":      {[]string{"v2.10.0", "v2.9.5"}, "v2.10.0"},
		"no version":     {[]string{"v2.8.0", "zzz", "v9", "latest", "v9.0.0 #", "v99.0.0\n  url", "9.0.0"}, "v2.8.0"},
		"nothing at all": {[]string{"zzz"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "bundle")
			w, err := bundle.Create(dir)
			if err != nil {
				t.Fatal(err)
			}
			files := []string{"providers/cluster-api/v1.14.0/core-components.yaml", "cert-manager/v1.18.0/cert-manager.yaml"}
			for _, v := range tc.versions {
				files = append(files, "flux/"+v+"/rbac.yaml")
			}
			for _, f := range files {
				if err := w.AddFile(f, []byte("kind: List\n")); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			r, err := Open(t.Context(), dir, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if got := r.FluxVersion(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
