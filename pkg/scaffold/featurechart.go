package scaffold

import (
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// FeatureChart is the Helm chart of a feature.
type FeatureChart struct {
	// URL of the chart: oci://registry/path/chart, or https://repository/chart.
	URL string
	// Version to install. It must not be a range, so that the fleet repo says which version runs.
	Version string
	// Values for all clusters.
	Values map[string]any
}

// FeatureChartFiles returns FeatureFiles with the chart's source, values and HelmRelease in the namespace. Errors: a bad name, a URL that
// is not that of a chart, a bad version.
func FeatureChartFiles(name string, c FeatureChart) ([]manifest.File, error) {
	files, err := FeatureFiles(name)
	if err != nil {
		return nil, err
	}
	data, err := c.source()
	if err != nil {
		return nil, err
	}
	data.Feature = name
	dir := path.Join(layout.FeaturesDir, name, "namespaced")
	for i := range files {
		if files[i].Path == path.Join(dir, "kustomization.yaml") {
			if files[i].Content, err = execute("feature/chart-namespaced.yaml", data); err != nil {
				return nil, err
			}
		}
	}
	for _, template := range []string{"source.yaml", "release.yaml"} {
		content, err := execute("feature/"+template, data)
		if err != nil {
			return nil, err
		}
		files = append(files, manifest.File{Path: path.Join(dir, template), Content: content})
	}
	values, err := featureValues(path.Join(dir, "values.yaml"), name, name+"-values", "", c.Values)
	return sorted(append(files, values)), err
}

// FeatureValues returns the file with the values of a feature's chart for the clusters of an environment, for a single cluster, or for the
// management cluster. Errors: bad names.
func FeatureValues(name string, t FeatureTarget, values map[string]any) (manifest.File, error) {
	if err := checkFeature(name); err != nil {
		return manifest.File{}, err
	}
	dir, object, where := t.Layout.Cluster(t.Environment, layout.CommonDir), name+"-values-environment", "in "+t.Environment
	switch {
	case t.Management: // a management cluster is a single cluster for the chart, too
		dir, object, where = t.Layout.Management(), name+"-values-cluster", "on the management cluster"
	case t.Cluster != "":
		dir, object, where = t.Layout.Cluster(t.Environment, t.Cluster), name+"-values-cluster", "on the cluster "+t.Cluster
	}
	return featureValues(path.Join(dir, "namespaced", name+"-values.yaml"), name, object, where, values)
}

func featureValues(file, feature, object, where string, values map[string]any) (manifest.File, error) {
	text, err := yamlBelow(values, 4)
	if err != nil {
		return manifest.File{}, err
	}
	if text == "" {
		text = "    {}"
	}
	content, err := execute("feature/values.yaml", struct{ Feature, Name, Where, Values string }{feature, object, where, text})
	return manifest.File{Path: file, Content: content}, err
}

// oneVersion matches a semantic version, but not a range.
var oneVersion = regexp.MustCompile(`^v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// chartSource has the template's data about the source of a chart.
type chartSource struct {
	Feature, URL, Chart, Version string
	OCI                          bool
}

func (c FeatureChart) source() (chartSource, error) {
	const hint = "give oci://registry/path/chart or https://repository/chart"
	out := chartSource{URL: strings.TrimSuffix(c.URL, "/"), Version: c.Version}
	u, err := url.Parse(out.URL)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(out.URL, "\"'#{}[]& \t\n\\") {
		return out, diag.Usage(hint, "%q is not the address of a chart", c.URL)
	}
	switch {
	case u.User != nil:
		return out, diag.Usage("put the password into a Secret, and name it in spec.secretRef of the source",
			"the address of the chart has a password in it")
	case u.Path == "":
		return out, diag.Usage(hint, "%q names no chart", c.URL)
	case u.Scheme == "oci":
		out.OCI = true
		if strings.ContainsAny(path.Base(u.Path), ":@") {
			return out, diag.Usage("leave it out of the address, and give --version", "%q has a version in it", c.URL)
		}
		if !inRegistry(u.Path) {
			return out, diag.Usage("registries take a-z, 0-9 and . _ - only, and no capital letters", "no registry has the path of %q", c.URL)
		}
	case u.Scheme == "https":
		out.Chart = path.Base(u.Path)
		out.URL = strings.TrimSuffix(out.URL, "/"+out.Chart)
		if err := checkChartName(out.Chart); err != nil {
			return out, err
		}
	default:
		return out, diag.Usage(hint, "the address of a chart begins with oci or https, not with %q", u.Scheme)
	}
	if c.Version == "" {
		return out, diag.Usage("give --version", "the version of the chart is missing")
	}
	if !oneVersion.MatchString(c.Version) {
		return out, diag.Usage("give a version such as 1.2.3, and no range", "%q is not a version of a chart", c.Version)
	}
	if out.OCI && strings.Contains(c.Version, "+") {
		out.Version = strings.ReplaceAll(c.Version, "+", "_") // as Helm does, because a tag must not contain a plus
	}
	return out, nil
}

// inRegistry tells whether Flux takes a path for that of an artifact in a registry. It takes what the registries take.
func inRegistry(at string) bool {
	const least, most, letters = 2, 255, "abcdefghijklmnopqrstuvwxyz0123456789_-./"
	at = strings.TrimPrefix(at, "/")
	foreign := strings.ContainsFunc(at, func(r rune) bool { return !strings.ContainsRune(letters, r) })
	return !foreign && !strings.Contains(at, "//") && len(at) >= least && len(at) <= most
}

// checkChartName returns an error if a name cannot be that of a chart, or would not be text in YAML.
func checkChartName(name string) error {
	return CheckName("chart", name, 63)
}
