package templates_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// The page about adding a cluster shows every flavour's example.
func TestFlavoursAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "tasks", "add-a-cluster.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]map[string]any{}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1) {
		var release struct {
			Spec struct {
				ChartRef struct{ Kind, Name, Namespace string }
				Values   map[string]any
			}
		}
		if err := yaml.UnmarshalStrict(block[1], &release); err != nil {
			t.Fatalf("%s\n%v", block[1], err)
		}
		shown[strings.TrimPrefix(release.Spec.ChartRef.Name, "prod-")] = release.Spec.Values
	}
	for _, flavour := range flavours(t) {
		if shown[flavour] == nil {
			t.Errorf("docs/tasks/add-a-cluster.md has no HelmRelease whose chartRef is named prod-%s", flavour)
			continue
		}
		if diff := cmp.Diff(schemaOf(t, flavour).Examples[0], shown[flavour]); diff != "" {
			t.Errorf("%s (-example of the schema +page):\n%s", flavour, diff)
		}
	}
}
