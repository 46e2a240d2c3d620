package validate

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// A value that keeps an object of Flux from being read is told once, at its own line: not by its schema and by the renderer.
func TestUnreadableIsToldOnce(t *testing.T) {
	const source = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: other, namespace: default}\n" +
		"spec:\n  url: https://git.example.com/acme/fleet.git\n  interval: INTERVAL\n"
	const release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a, namespace: default}\n" +
		"spec:\n  chart: {spec: {chart: ./charts/a, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}\n" +
		"  interval: INTERVAL\n"
	const folder = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a, namespace: default}\n" +
		"spec:\n  {path: ./other, prune: true, sourceRef: {kind: GitRepository, name: other}}\n"
	for name, text := range map[string]string{
		"a source": source, "a release": release, "a Kustomization": folder[:len(folder)-2] + ", interval: INTERVAL}\n",
	} {
		for value, rule := range map[string]string{"10min": RuleValue, "10": RuleType} {
			files := infra("    exclude: []\n", map[string]string{
				"infra/a.yaml": strings.Replace(text, "INTERVAL", value, 1), "infra/b.yaml": aConfigMap,
			})
			at := 1 + strings.Count(text[:strings.Index(text, "INTERVAL")], "\n")
			var found []diag.Finding
			for _, f := range validate(t, files, knownKinds(t)).Findings {
				if f.File == "infra/a.yaml" && f.Severity == diag.SeverityError {
					found = append(found, f)
				}
			}
			if len(found) != 1 || found[0].Rule != rule || found[0].Line != at {
				t.Errorf("%s with %s: %v, want one of %s in line %d", name, value, found, rule, at)
			}
		}
	}
}
