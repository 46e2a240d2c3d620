package manifests

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

// CertManager returns cert-manager's static manifest, content by path in the bundle. module is the folder of its module,
// whose chart is a template of a chart: a release writes the version and the CRDs into it.
func CertManager(version, module string) (map[string][]byte, error) {
	deploy := filepath.Join(module, "deploy")
	loaded, err := certManagerChart(version, deploy)
	if err != nil {
		return nil, fmt.Errorf("read the chart of cert-manager: %w", err)
	}
	values, err := certManagerValues(loaded, filepath.Join(deploy, "manifests/helm-values.yaml"))
	if err != nil {
		return nil, fmt.Errorf("values of cert-manager: %w", err)
	}
	rendered, err := engine.Render(loaded, values)
	if err != nil {
		return nil, fmt.Errorf("render cert-manager: %w", err)
	}
	namespace, err := os.ReadFile(filepath.Join(deploy, "manifests/namespace.yaml"))
	if err != nil {
		return nil, err
	}
	manifest := joined(namespace, rendered)
	return map[string][]byte{path.Join("cert-manager", version, "cert-manager.yaml"): manifest}, nil
}

func certManagerChart(version, deploy string) (*chart.Chart, error) {
	dir := filepath.Join(deploy, "charts/cert-manager")
	var files []*loader.BufferedFile
	add := func(name, file string) error {
		content, err := os.ReadFile(file)
		files = append(files, &loader.BufferedFile{Name: name, Data: content})
		return err
	}
	templates, err := filepath.Glob(filepath.Join(dir, "templates/*"))
	if err != nil {
		return nil, err
	}
	crds, err := filepath.Glob(filepath.Join(deploy, "crds/*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, file := range append(templates, crds...) {
		if err := add("templates/"+filepath.Base(file), file); err != nil {
			return nil, err
		}
	}
	if err := add("Chart.yaml", filepath.Join(dir, "Chart.template.yaml")); err != nil {
		return nil, err
	}
	if err := add("values.yaml", filepath.Join(dir, "values.yaml")); err != nil {
		return nil, err
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, err
	}
	loaded.Metadata.Version, loaded.Metadata.AppVersion = version, version
	return loaded, nil
}

func certManagerValues(loaded *chart.Chart, file string) (chartutil.Values, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	given := map[string]any{}
	if err := yaml.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	// As for the published manifest: the check is a hook of Helm's, and nothing here runs hooks.
	given["creator"] = "static"
	given["startupapicheck"] = map[string]any{"enabled": false}
	release := chartutil.ReleaseOptions{Name: "cert-manager", Namespace: "cert-manager", Revision: 1, IsInstall: true}
	return chartutil.ToRenderValues(loaded, given, release, chartutil.DefaultCapabilities)
}

// joined is one manifest of everything that was rendered, CRDs and the namespace first.
func joined(namespace []byte, rendered map[string]string) []byte {
	names := make([]string, 0, len(rendered))
	for name := range rendered {
		if strings.HasSuffix(name, ".yaml") {
			names = append(names, name)
		}
	}
	isCRD := func(name string) bool { return strings.HasPrefix(path.Base(name), "crd-") }
	slices.SortFunc(names, func(a, b string) int {
		if isCRD(a) != isCRD(b) {
			if isCRD(a) {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	var out bytes.Buffer
	out.Write(bytes.TrimSpace(namespace))
	out.WriteByte('\n')
	for _, name := range names {
		content := strings.TrimSpace(rendered[name])
		if content == "" {
			continue
		}
		out.WriteString("---\n" + strings.TrimPrefix(content, "---\n") + "\n")
	}
	return out.Bytes()
}
