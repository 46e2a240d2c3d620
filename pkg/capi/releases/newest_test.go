package releases

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/capi/releases/releasestest"
)

// The newest version that fits is found if the newest of all does not fit, because of its contract, because it is too far, or because it is
// a pre-release.
func TestNewestThatFits(t *testing.T) {
	const strange = "- {major: 1, minor: %d, contract: v9}\n"
	for name, tc := range map[string]struct {
		provider            Provider
		versions, tags      []string
		strangeFrom         int // the first minor version with an unknown contract
		installed, declared string
		want                Newest
	}{
		"the newest of all":       {versions: []string{"v1.13.0", "v1.14.2", "v1.9.0"}, want: Newest{Version: "v1.14.2"}},
		"a pre-release is not it": {versions: []string{"v1.14.2", "v1.15.0-rc.0"}, want: Newest{Version: "v1.14.2"}},
		"pre-releases alone":      {versions: []string{"v1.14.0-rc.1", "v1.14.0-rc.0"}, want: Newest{Version: "v1.14.0-rc.1"}},
		"it runs already":         {versions: []string{"v1.13.0"}, installed: "v1.13.0", want: Newest{Version: "v1.13.0"}},
		"another contract": {versions: []string{"v1.16.0", "v1.15.0", "v1.14.3", "v1.14.2"}, strangeFrom: 15, want: Newest{
			Version: "v1.14.3", Newer: "v1.16.0", Why: "has the contract v9 of Cluster API: another fleetctl may work with it",
		}},
		"another contract in all": {versions: []string{"v1.16.0", "v1.15.0"}, strangeFrom: 1, want: Newest{
			Newer: "v1.16.0", Why: "has the contract v9 of Cluster API: another fleetctl may work with it",
		}},
		"too far for one step": {
			provider: Provider{Name: "cluster-api", Type: Core}, installed: "v1.10.4",
			versions: []string{"v1.15.0", "v1.14.0", "v1.13.5", "v1.13.4", "v1.10.4"},
			want:     Newest{Version: "v1.13.5", Newer: "v1.15.0", Why: "is too far for one step: go to v1.13 first"},
		},
		"too far from what is declared": {
			provider: Provider{Name: "cluster-api", Type: Core}, declared: "v1.10.4",
			versions: []string{"v1.15.0", "v1.13.5"},
			want:     Newest{Version: "v1.13.5", Newer: "v1.15.0", Why: "is too far for one step: go to v1.13 first"},
		},
		"older than what runs": {versions: []string{"v1.13.0"}, installed: "v1.14.0", want: Newest{
			Newer: "v1.13.0", Why: "is older than the installed v1.14.0",
		}},
		"tags without a release":      {versions: []string{"v1.14.2"}, tags: []string{"v1.99.0", "v1.98.0"}, want: Newest{Version: "v1.14.2"}},
		"older than what is declared": {versions: []string{"v1.13.0"}, declared: "v1.14.0", want: Newest{Version: "v1.13.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if tc.provider.Name == "" {
				tc.provider = Provider{Name: "docker", Type: Infrastructure}
			}
			series := ""
			for minor := range 20 {
				if tc.strangeFrom > 0 && minor >= tc.strangeFrom {
					series += fmt.Sprintf(strange, minor)
					continue
				}
				series += fmt.Sprintf("- {major: 1, minor: %d, contract: v1beta2}\n", minor)
			}
			head, _, _ := strings.Cut(releasestest.Metadata, "- {")
			for _, v := range tc.versions {
				dir := filepath.Join(root, tc.provider.Label(), v)
				releasestest.WriteFile(t, filepath.Join(dir, "metadata.yaml"), head+series)
				releasestest.WriteFile(t, filepath.Join(dir, "infrastructure-components-development.yaml"), releasestest.Components)
			}
			for _, v := range tc.tags {
				file := filepath.Join(root, tc.provider.Label(), v, "infrastructure-components-development.yaml")
				releasestest.WriteFile(t, file, releasestest.Components)
			}
			got, err := newTestSource(t, SourceOptions{Repository: root}).NewestThatFits(t.Context(), tc.provider, tc.installed, tc.declared)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
