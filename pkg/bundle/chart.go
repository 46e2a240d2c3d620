package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// chartsDir holds the Helm charts among a bundle's files, as <name>-<version>.tgz.
const chartsDir = "charts"

// chartMediaType is the media type of the layer with a chart's archive, as `helm push` writes it.
const chartMediaType = types.MediaType("application/vnd.cncf.helm.chart.content.v1.tar+gzip")

// MaxChart bounds the archive of a chart, in bytes.
const MaxChart = 64 << 20

// maxChartFile bounds Chart.yaml, in bytes.
const maxChartFile = 1 << 20

const chartHint = "give the archive of a Helm chart (`helm package` or `helm pull` makes one), or oci://registry/path:version"

// readChart returns the archive of a Helm chart and its path in a bundle. source is a file, or oci://registry/path:version.
func readChart(ctx context.Context, source string) (file string, content []byte, err error) {
	if ref, ok := strings.CutPrefix(source, "oci://"); ok {
		content, err = pullChart(ctx, ref)
	} else {
		content, err = readChartFile(source)
	}
	if err != nil {
		return "", nil, err
	}
	file, err = chartPath(content)
	return file, content, err
}

func readChartFile(source string) ([]byte, error) {
	f, err := within.OpenNamed(source)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readLimited(f, MaxChart)
}

// pullChart pulls a chart as `helm pull` does, with the credentials of docker or podman.
func pullChart(ctx context.Context, ref string) ([]byte, error) {
	parsed, err := name.ParseReference(ref, name.StrictValidation) // a reference without a tag must not mean "latest"
	if err != nil {
		return nil, err
	}
	image, err := remote.Image(parsed, asking(ctx, parsed.Context())...)
	if err != nil {
		return nil, diag.Wrap("", quotable(err), pullHint(parsed, err))
	}
	m, err := image.Manifest()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(m.Layers, func(l v1.Descriptor) bool { return l.MediaType == chartMediaType })
	if i < 0 {
		return nil, errors.New("it is not a Helm chart")
	}
	layer, err := image.LayerByDigest(m.Layers[i].Digest)
	if err != nil {
		return nil, err
	}
	r, err := layer.Compressed() // the reader verifies the digest
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return readLimited(r, MaxChart)
}

// chartName and chartVersion match the names and versions that Helm accepts. Both are safe as parts of a file name.
var (
	chartName    = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]*$`)
	chartVersion = regexp.MustCompile(`^v?[0-9][0-9A-Za-z.+-]*$`)
)

// chartPath returns the path of a chart in a bundle, from the name and version in its Chart.yaml.
func chartPath(archive []byte) (string, error) {
	raw, err := chartYAML(archive)
	if err != nil {
		return "", err
	}
	var chart struct {
		Name    string `yaml:"name"`
		Version string `yaml:"version"`
	}
	if err := yaml.Unmarshal(raw, &chart); err != nil {
		return "", fmt.Errorf("its Chart.yaml: %w", err)
	}
	if !chartName.MatchString(chart.Name) || !chartVersion.MatchString(chart.Version) {
		return "", fmt.Errorf("its Chart.yaml has name %.60q and version %.60q", chart.Name, chart.Version)
	}
	return path.Join(chartsDir, chart.Name+"-"+chart.Version+".tgz"), nil
}

// chartYAML returns the content of <folder>/Chart.yaml in the archive. It writes no files.
func chartYAML(archive []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, errors.New("it is not a Helm chart: no gzip archive")
	}
	in := tar.NewReader(&budgetReader{r: z, left: MaxChart})
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it is not a Helm chart: it has no Chart.yaml")
		}
		if err != nil {
			return nil, fmt.Errorf("it is not a Helm chart: %w", err)
		}
		folder, file := path.Split(path.Clean(h.Name))
		if file == "Chart.yaml" && strings.Count(folder, "/") == 1 && h.Typeflag == tar.TypeReg {
			return readLimited(in, maxChartFile)
		}
	}
}

// readLimited reads all of r. It fails if r has more than limit bytes.
func readLimited(r io.Reader, limit int64) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = fmt.Errorf("it is larger than %d bytes", limit)
	}
	return raw, err
}

// addCharts adds all charts. If one fails it tries the others. The error joins all errors.
func (w *Writer) addCharts(ctx context.Context, sources []string, detail func(string)) error {
	var problems []error
	for i, source := range sources {
		detail(fmt.Sprintf("%d of %d: %s", i+1, len(sources), source))
		file, content, err := readChart(ctx, source)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			err = w.addFile(ctx, file, content)
		}
		if err != nil && diag.Hint(err) == "" {
			err = diag.Wrap("", err, chartHint)
		}
		problems = append(problems, diag.Wrap("add chart "+source, err, ""))
	}
	return errors.Join(problems...)
}
