package bundle

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// listLimit bounds the time to list the versions of a chart. A registry may have any number of pages.
const listLimit = time.Minute

// ChartVersions returns the versions of a chart from the bundle from, or else from its registry or repository, in no order. from may be
// nil. A registry has no list of charts: the tags may also be those of other artifacts, and may have "_" for "+". The version of ref is of
// no importance.
func ChartVersions(ctx context.Context, from *Bundle, ref ChartRef) (versions []string, err error) {
	if from != nil {
		return from.chartVersions(ref), nil
	}
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	of := strings.TrimSuffix(ref.URL, "/")
	if registry, ok := strings.CutPrefix(of, "oci://"); ok {
		versions, err = tags(ctx, registry)
	} else {
		of += "/" + ref.Name
		var charts []indexed
		charts, err = indexedCharts(ctx, ref)
		for _, c := range charts {
			versions = append(versions, c.Version)
		}
	}
	hint := "check its address and the network; or give --bundle with a bundle that has the chart"
	if diag.Hint(err) != "" { // err has a hint that fits the cause
		hint = ""
	}
	return versions, diag.Wrap("list the versions of the chart "+of, err, hint)
}

// chartVersions returns the versions of a chart in the bundle. The bundle knows charts by their names only.
func (b *Bundle) chartVersions(ref ChartRef) (versions []string) {
	chart := ref.Name
	if chart == "" {
		chart = path.Base(ref.URL)
	}
	for _, f := range b.Files() {
		version, ok := strings.CutPrefix(f.Name, path.Join(chartsDir, chart)+"-")
		if version, isChart := strings.CutSuffix(version, ".tgz"); ok && isChart && f.Kind == KindChart {
			versions = append(versions, version) // of web-extra 1.0.0 it is no version
		}
	}
	return versions
}

func tags(ctx context.Context, repository string) ([]string, error) {
	parsed, err := name.NewRepository(repository, name.StrictValidation)
	if err != nil {
		return nil, err
	}
	found, err := remote.List(parsed, asking(ctx, parsed)...)
	if err != nil {
		return nil, diag.Wrap("", quotable(err), pullHint(parsed.Tag("latest"), err))
	}
	return found, nil
}

// WantsKubernetes returns the range of Kubernetes versions that a chart asks for in its Chart.yaml; empty if it asks for none.
func (c *Chart) WantsKubernetes() (string, error) {
	raw, err := chartYAML(c.Archive)
	if err != nil {
		return "", err
	}
	var chart struct {
		KubeVersion string `yaml:"kubeVersion"`
	}
	if err := yaml.Unmarshal(raw, &chart); err != nil {
		return "", fmt.Errorf("its Chart.yaml: %w", err)
	}
	return chart.KubeVersion, nil
}
