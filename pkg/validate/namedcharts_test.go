package validate

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/render"
)

// The files of all features are read once for all charts that are not in fleet.lock, and not at all where nothing may be fetched.
func TestFeaturesAreReadOnceForTheirCharts(t *testing.T) {
	files := map[string]string{}
	for i := range 50 {
		dir := fmt.Sprintf("features/f%d/namespaced/", i)
		files[dir+"source.yaml"] = fmt.Sprintf("kind: OCIRepository\nspec: {url: oci://charts.example.com/f%d, ref: {tag: 1.0.0}}\n", i)
		files[dir+"release.yaml"] = "kind: HelmRelease\n"
	}
	dir := write(t, files)
	wanted := render.OutsideChart{Address: "oci://charts.example.com/f7", Version: "1.0.0"}
	offline := newProvider(Options{}, dir)
	if got := testing.AllocsPerRun(1, func() {
		if _, err := offline.chart(t.Context(), wanted); err == nil {
			t.Error("there is an archive")
		}
	}); got > 500 {
		t.Errorf("%v allocations for a chart that may not be fetched", got)
	}
	p := newProvider(Options{FetchCharts: true}, dir)
	if found := p.named(wanted); found == nil || found.Name != "f7" {
		t.Fatalf("the chart of the feature is %v", found)
	}
	if err := os.RemoveAll(filepath.Join(dir, "features")); err != nil {
		t.Fatal(err)
	}
	wanted.Address = "oci://charts.example.com/f9"
	if found := p.named(wanted); found == nil || found.Name != "f9" {
		t.Errorf("the features are read again: %v", found)
	}
	if found := p.named(render.OutsideChart{Address: wanted.Address, Version: "2.0.0"}); found != nil {
		t.Errorf("%v has another version", found)
	}
}
