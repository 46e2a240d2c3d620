package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// ChartRef refers to a Helm chart. A chart in an OCI registry has the URL "oci://registry/path/chart" and no Name. A chart in a repository
// has the repository's URL, such as "https://charts.example.com", and a Name.
type ChartRef struct{ URL, Name, Version string }

// String returns the chart's address and version for messages.
func (r ChartRef) String() string {
	if r.Name == "" {
		return r.URL + ":" + r.Version
	}
	return strings.TrimSuffix(r.URL, "/") + "/" + r.Name + " " + r.Version
}

// Chart is the archive of a Helm chart, and its path in a bundle.
type Chart struct {
	Path    string
	Archive []byte
}

// maxRepository bounds the index of a repository, in bytes. Large ones have some 15 MiB.
const maxRepository = 64 << 20

// FetchChart returns a chart from the bundle from, or else fetches it. from may be nil. The error names the chart.
func FetchChart(ctx context.Context, from *Bundle, ref ChartRef) (*Chart, error) {
	if from != nil {
		if found, err := from.Chart(ref); !errors.Is(err, ErrNotFound) {
			return found, err
		}
	}
	var c Chart
	var err error
	if registry, ok := strings.CutPrefix(ref.URL, "oci://"); ok {
		c.Archive, err = pullChart(ctx, strings.TrimSuffix(registry, "/")+":"+ref.Version)
	} else {
		c.Archive, err = fetchFromRepository(ctx, ref)
	}
	if err == nil {
		c.Path, err = chartPath(c.Archive)
	}
	if err == nil && !slices.Contains(ref.paths(), c.Path) { // storing it would replace another chart
		err = fmt.Errorf("the chart at this address is %s", path.Base(c.Path))
	}
	hint := "check its address, its version and the network; or give --from with a bundle that has the chart"
	if diag.Hint(err) != "" { // err has a hint that fits the cause
		hint = ""
	}
	return &c, diag.Wrap("fetch the chart "+ref.String(), err, hint)
}

// paths returns the paths that the chart may have in a bundle. There are two because Helm accepts a version with and without the v.
func (r ChartRef) paths() []string {
	name := r.Name
	if name == "" {
		name = path.Base(r.URL)
	}
	version := strings.ReplaceAll(r.Version, "_", "+")
	other, hasV := strings.CutPrefix(version, "v")
	if !hasV {
		other = "v" + version
	}
	return []string{path.Join(chartsDir, name+"-"+version+".tgz"), path.Join(chartsDir, name+"-"+other+".tgz")}
}

// Chart returns a chart of the bundle. The error matches ErrNotFound if the bundle lacks a chart of this name and version.
func (b *Bundle) Chart(ref ChartRef) (_ *Chart, err error) {
	for _, at := range ref.paths() {
		var archive []byte
		if archive, err = b.ReadFile(at); err == nil {
			return &Chart{Path: at, Archive: archive}, nil
		}
		if !errors.Is(err, ErrNotFound) {
			break
		}
	}
	return nil, err
}

// indexed is a version of a chart in the index of a repository.
type indexed struct {
	Version string   `yaml:"version"`
	URLs    []string `yaml:"urls"`
	Digest  string   `yaml:"digest"`
}

// indexedCharts returns all versions of a chart in the index of its repository. It is an error if there is none.
func indexedCharts(ctx context.Context, ref ChartRef) ([]indexed, error) {
	base, err := ref.repository()
	if err != nil {
		return nil, err
	}
	raw, err := get(ctx, base.JoinPath("index.yaml"), maxRepository)
	if err != nil {
		return nil, err
	}
	if err := screenIndex(raw); err != nil {
		return nil, err
	}
	var index struct {
		Entries map[string][]indexed `yaml:"entries"`
	}
	if err := yaml.Unmarshal(raw, &index); err != nil {
		return nil, fmt.Errorf("read the index of the repository: %w", err)
	}
	if len(index.Entries[ref.Name]) == 0 {
		return nil, fmt.Errorf("the repository has no chart %s", ref.Name)
	}
	return index.Entries[ref.Name], nil
}

// repository is the URL of the chart's repository.
func (r ChartRef) repository() (*url.URL, error) {
	return url.Parse(strings.TrimSuffix(r.URL, "/") + "/")
}

// fetchFromRepository fetches a chart as `helm pull --repo` does. The chart must have the checksum in the repository's index.
func fetchFromRepository(ctx context.Context, ref ChartRef) ([]byte, error) {
	base, err := ref.repository()
	if err != nil {
		return nil, err
	}
	versions, err := indexedCharts(ctx, ref)
	if err != nil {
		return nil, err
	}
	plain := strings.TrimPrefix(ref.Version, "v")
	for _, v := range versions {
		if strings.TrimPrefix(v.Version, "v") != plain || len(v.URLs) == 0 {
			continue
		}
		at, err := base.Parse(v.URLs[0])
		if err != nil {
			return nil, err
		}
		archive, err := get(ctx, at, MaxChart)
		sum := sha256.Sum256(archive)
		if err == nil && v.Digest != "" && strings.TrimPrefix(v.Digest, "sha256:") != hex.EncodeToString(sum[:]) {
			err = fmt.Errorf("%s does not have the checksum of the index", sameorigin.Display(at.String()))
		}
		return archive, err
	}
	return nil, fmt.Errorf("the repository has no version %s of the chart %s", ref.Version, ref.Name)
}

// maxIndexMarks bounds the characters that may begin a value in the index of a repository. Large indexes have half a million lines.
const maxIndexMarks = 3_000_000

// screenIndex refuses an index with too many values before the index is parsed. A parsed value takes a hundred times the memory of its
// text, and a text of 64 MiB can hold 20 million values.
func screenIndex(raw []byte) error {
	marks := 0
	for i, c := range raw {
		switch c {
		case '\n', '\r', ',', '[', '{':
			marks++
		case '-', '?', ':':
			if i+1 < len(raw) && (raw[i+1] == ' ' || raw[i+1] == '\t') {
				marks++
			}
		}
	}
	if marks > maxIndexMarks {
		return fmt.Errorf("the index of the repository has more than %d values", maxIndexMarks)
	}
	return nil
}

func get(ctx context.Context, from *url.URL, limit int64) ([]byte, error) {
	if from.Scheme != "https" && from.Scheme != "http" {
		return nil, fmt.Errorf("%s is neither https nor http", sameorigin.Display(from.String()))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Client{Transport: sameorigin.Download(contact.Transport(nil))}).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", sameorigin.Display(from.String()), resp.Status)
		if resp.StatusCode >= http.StatusInternalServerError || resp.StatusCode == http.StatusTooManyRequests {
			err = diag.Wrap("", err, "the server, or a proxy before it, has a problem or limits requests: run the same command again later, "+
				"or give --from with a bundle that has the chart")
		}
		return nil, err
	}
	return readLimited(resp.Body, limit)
}

// maxChartFiles bounds the number of a chart's files.
const maxChartFiles = 10_000

// Unpack writes the files of the chart to a new folder dir, without the archive's top folder. It writes nothing outside of dir, and skips
// entries that are not plain files.
func (c *Chart) Unpack(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	z, err := gzip.NewReader(bytes.NewReader(c.Archive))
	if err != nil {
		return err
	}
	in := tar.NewReader(&budgetReader{r: z, left: MaxChart})
	for range maxChartFiles {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpack %s: %w", c.Path, err)
		}
		_, name, ok := strings.Cut(path.Clean(h.Name), "/")
		if h.Typeflag != tar.TypeReg || !ok || !fs.ValidPath(name) || slices.Contains(strings.Split(name, "/"), "..") {
			continue
		}
		content, err := readLimited(in, MaxChart)
		if err == nil {
			err = root.MkdirAll(path.Dir(name), 0o700)
		}
		if err == nil {
			err = root.WriteFile(name, content, 0o600)
		}
		if err != nil {
			return fmt.Errorf("unpack %s: %w", c.Path, err)
		}
	}
	return fmt.Errorf("unpack %s: it has more than %d files", c.Path, maxChartFiles)
}
