package validate

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"maps"
	"strings"
	"testing"
)

// packed is a chart called inner, with this file, as an archive.
func packed(t *testing.T, name, content string) string {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	var errs []error
	for name, text := range map[string]string{"Chart.yaml": "apiVersion: v2\nname: inner\nversion: 1.0.0\n", name: content} {
		errs = append(errs, w.WriteHeader(&tar.Header{Name: "inner/" + name, Mode: 0o644, Size: int64(len(text))}))
		_, err := w.Write([]byte(text))
		errs = append(errs, err)
	}
	if err := errors.Join(append(errs, w.Close(), z.Close())...); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// CRDs that a template makes, or an archive of another chart has, judge objects as those do that stand in the repo.
func TestCRDsThatChartsMake(t *testing.T) {
	crds := knownKinds(t)
	crd := strings.Replace(gizmos, ", x-kubernetes-validations: [{rule: 'self.nope > 1'}]", ", properties: {a: {type: string}}", 1)
	for name, more := range map[string]map[string]string{
		"a template": {"charts/own/templates/crd.yaml": "{{- if true }}\n" + crd + "{{- end }}\n"},
		"an archive": {"charts/own/charts/inner-1.0.0.tgz": packed(t, "crds/crd.yaml", crd)},
	} {
		files := fleet(t)
		maps.Copy(files, more)
		files["charts/own/Chart.yaml"] = "apiVersion: v2\nname: own\nversion: 1.0.0\n"
		files[platform+"own.yaml"] = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: own, namespace: platform}\n" +
			"spec: {interval: 10m, chart: {spec: {chart: ./charts/own, sourceRef: {kind: GitRepository, name: flux-system, namespace: " +
			"flux-system}}}}\n"
		files[platform+"gizmos.yaml"] = gizmo("a") + strings.Replace(gizmo("b"), "spec: {}", "spec: {a: x}", 1)
		report(t, validate(t, files, crds).Findings)
		files[platform+"gizmos.yaml"] += strings.Replace(gizmo("c"), "spec: {}", "spec: {b: x}", 1)
		findings := validate(t, files, crds).Findings
		if len(findings) != 1 || findings[0].Rule != RuleUnknownField || findings[0].File != platform+"gizmos.yaml" {
			t.Errorf("%s: %v", name, findings)
		}
	}
}
