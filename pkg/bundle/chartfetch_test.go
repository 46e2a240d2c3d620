package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/bundle/bundletest"
)

// A chart is fetched from the address in the repository's index, and must have the checksum there.
func TestChartFromRepository(t *testing.T) {
	archive := bundletest.Chart(t, "web", "1.2.0")
	sum := sha256.Sum256(archive)
	index := fmt.Sprintf(`entries:
  web:
  - {version: 1.3.0, urls: [charts/web-1.3.0.tgz], digest: %q}
  - {version: 1.2.0, urls: [charts/web-1.2.0.tgz], digest: %q}
  odd:
  - {version: 1.0.0, urls: ["file:///etc/passwd"]}
`, hex.EncodeToString(sum[1:])+"00", hex.EncodeToString(sum[:]))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/repo/index.yaml":
			_, _ = w.Write([]byte(index))
		case "/repo/charts/web-1.2.0.tgz", "/repo/charts/web-1.3.0.tgz":
			_, _ = w.Write(archive)
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	for _, test := range []struct {
		ref  ChartRef
		says string
	}{
		{ref: ChartRef{s.URL + "/repo", "web", "1.2.0"}},
		{ref: ChartRef{s.URL + "/repo/", "web", "v1.2.0"}},
		{ChartRef{s.URL + "/repo", "web", "1.3.0"}, "does not have the checksum of the index"},
		{ChartRef{s.URL + "/repo", "web", "1.4.0"}, "the repository has no version 1.4.0 of the chart web"},
		{ChartRef{s.URL + "/repo", "wbe", "1.2.0"}, "the repository has no chart wbe"},
		{ChartRef{s.URL + "/repo", "odd", "1.0.0"}, "neither https nor http"},
		{ChartRef{s.URL + "/nothing", "web", "1.2.0"}, "404 Not Found"},
	} {
		got, err := FetchChart(t.Context(), nil, test.ref)
		switch {
		case test.says == "" && (err != nil || got.Path != "charts/web-1.2.0.tgz"):
			t.Errorf("%s: %+v, %v", test.ref, got, err)
		case test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)):
			t.Errorf("%s: %v, want %q", test.ref, err, test.says)
		}
	}
}

// Unpacking a chart's archive writes nothing outside of its folder.
func TestUnpackChart(t *testing.T) {
	c := Chart{Path: "charts/web-1.2.0.tgz", Archive: bundletest.Archive(t, map[string]string{
		"web/Chart.yaml": "name: web", "web/templates/a.yaml": "a: 1", "web/../../evil": "evil", "/web/evil": "evil",
		"../web/evil": "evil", "top": "left out",
	})}
	dir := filepath.Join(t.TempDir(), "in", "charts")
	if err := os.Mkdir(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := c.Unpack(dir); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(filepath.Join(dir, "templates", "a.yaml")); err != nil || string(content) != "a: 1" {
		t.Errorf("%q, %v", content, err)
	}
	for _, outside := range []string{filepath.Dir(dir), filepath.Dir(filepath.Dir(dir))} {
		if _, err := os.Stat(filepath.Join(outside, "evil")); err == nil {
			t.Errorf("it wrote to %s", outside)
		}
	}
	if err := (&Chart{Archive: []byte("none")}).Unpack(filepath.Join(t.TempDir(), "x")); err == nil {
		t.Error("no archive was unpacked")
	}
}
