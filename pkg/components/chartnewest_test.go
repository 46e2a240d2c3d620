package components

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/bundle/bundletest"
)

// The newest version of a chart in a repository that fits has the same major version, is a release, and accepts the Kubernetes of each
// cluster.
func TestNewestChart(t *testing.T) {
	ranges := map[string]string{
		"0.9.0": "", "1.2.0": "", "1.9.0": ">=1.30.0-0", "1.10.0": ">=1.35.0-0", "1.11.0": ">=1.36.0-0", "1.12.0-rc.1": "", "2.0.0": "",
	}
	var index strings.Builder
	index.WriteString("entries:\n  web:\n  - {version: not-a-version, urls: [none.tgz]}\n")
	for version := range ranges {
		fmt.Fprintf(&index, "  - {version: %s, urls: [web-%s.tgz]}\n", version, version)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/index.yaml" {
			_, _ = w.Write([]byte(index.String()))
			return
		}
		version := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/web-"), ".tgz")
		wants, ok := ranges[version]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(bundletest.Archive(t, map[string]string{
			"web/Chart.yaml": fmt.Sprintf("apiVersion: v2\nname: web\nversion: %s\nkubeVersion: %q\n", version, wants),
		}))
	}))
	defer s.Close()
	r := &Reader{charts: ChartsIn(t.TempDir())}
	for _, test := range []struct {
		version, kubernetes string
		want                NewestChart
	}{
		{"1.2.0", "v1.36.3", NewestChart{"1.11.0", "2.0.0", "is another major version"}},
		{"1.2.0", "v1.36.3 v1.35.4", NewestChart{"1.10.0", "2.0.0", "is another major version"}},
		{"1.2.0", "v1.29.0", NewestChart{"1.2.0", "2.0.0", "is another major version"}},
		{"1.2.0", "", NewestChart{"1.11.0", "2.0.0", "is another major version"}},
		{"1.12.0-rc.0", "", NewestChart{"1.12.0-rc.1", "2.0.0", "is another major version"}},
		{"v1.11.0", "v1.36.3", NewestChart{"v1.11.0", "2.0.0", "is another major version"}},
		{"2.0.0", "v1.36.3", NewestChart{Version: "2.0.0"}},
		{"0.8.0", "v1.36.3", NewestChart{"0.9.0", "2.0.0", "is another major version"}},
	} {
		f := v1alpha1.LockedFeature{Name: "web", Chart: s.URL + "/web", Version: test.version}
		got, err := r.NewestChart(t.Context(), f, strings.Fields(test.kubernetes))
		if err != nil || *got != test.want {
			t.Errorf("%s on %s: %+v, %v", test.version, test.kubernetes, got, err)
		}
	}
	delete(ranges, "1.11.0")
	locked, err := r.LockChart(t.Context(), v1alpha1.LockedFeature{Name: "web", Chart: s.URL + "/web", Version: "1.10.0"})
	if err != nil || r.charts.Kept(locked.SHA256) == nil {
		t.Errorf("%+v, %v", locked, err)
	}
	if _, err := r.NewestChart(t.Context(), v1alpha1.LockedFeature{Chart: s.URL + "/wbe", Version: "1.0.0"}, nil); err == nil ||
		!strings.Contains(err.Error(), "the repository has no chart wbe") {
		t.Errorf("got %v", err)
	}
}

// A registry writes a version with a plus as a tag with an underscore, and a bundle does not.
func TestNewestChartWithAPlus(t *testing.T) {
	registry := bundletest.Registry(t)
	for _, tag := range []string{"1.2.0", "1.3.0_build.7"} {
		bundletest.PushChart(t, registry+"/charts/web:"+tag, "web", strings.ReplaceAll(tag, "_", "+"))
	}
	r := &Reader{charts: ChartsIn(t.TempDir())}
	f := v1alpha1.LockedFeature{Name: "web", Chart: "oci://" + registry + "/charts/web", Version: "1.2.0"}
	got, err := r.NewestChart(t.Context(), f, []string{"v1.36.3"})
	if err != nil || *got != (NewestChart{Version: "1.3.0_build.7"}) {
		t.Fatalf("%+v, %v", got, err)
	}
	f.Version = got.Version
	if locked, err := r.LockChart(t.Context(), f); err != nil || len(locked.SHA256) != 64 {
		t.Errorf("%+v, %v", locked, err)
	}
}
