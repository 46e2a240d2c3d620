package render_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// ownRepo is a repo with its own layout and the chart apps/web, whose HelmRelease has some lines more in its spec.
func ownRepo(t *testing.T, spec string, files map[string]string) (fstest.MapFS, *v1alpha1.Fleet) {
	t.Helper()
	fleet, err := v1alpha1.Decode("fleet.yaml", []byte(`apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  managementClusters:
  - {name: mgmt, path: clusters/mgmt, host: {type: existing}}
`))
	if err != nil {
		t.Fatal(err)
	}
	repo := fstest.MapFS{
		"clusters/mgmt/flux-system/gotk-sync.yaml": {Data: []byte(`apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1m, url: "https://git.example.com/acme/fleet", ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system}
spec:
  interval: 10m
  path: ./clusters/mgmt
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
  postBuild: {substituteFrom: [{kind: Secret, name: settings}]}
`)},
		"clusters/mgmt/web.yaml": {Data: []byte(`apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: flux-system}
spec:
  interval: 1m
  chart: {spec: {chart: ./charts/web, sourceRef: {kind: GitRepository, name: flux-system}}}
` + spec)},
		"charts/web/Chart.yaml": {Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")},
	}
	for name, text := range files {
		repo[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return repo, fleet
}

// madeBy returns the objects that charts make, as "name from template", and the findings but for those about variables.
func madeBy(t *testing.T, repo fstest.MapFS, fleet *v1alpha1.Fleet) (made []string, findings diag.Findings) {
	t.Helper()
	result, err := render.New(repo, fleet, render.Options{}).All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range result.Objects {
		if o.Template != "" {
			made = append(made, o.Name+" from "+o.Template)
		}
	}
	slices.Sort(made)
	return made, slices.DeleteFunc(result.Findings, func(f diag.Finding) bool { return f.Rule == render.RuleSubstitute })
}

// Source-controller builds the dependencies of a chart of the repo: it takes those of the repo, and fetches the others.
func TestDependenciesOfOwnCharts(t *testing.T) {
	const (
		web = "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n"
		cm  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-{{ .Chart.Name }}}\n"
	)
	common := map[string]string{
		"charts/common/Chart.yaml": "apiVersion: v2\nname: common\nversion: 1.2.0\n" +
			"dependencies: [{name: more, version: 1, repository: \"oci://r.example.com\"}]\n",
		"charts/common/templates/cm.yaml":    cm,
		"charts/common/.helmignore":          "left-out.yaml\n",
		"charts/common/crds/left-out.yaml":   "a: [b\n",
		"charts/web/templates/cm.yaml":       cm,
		"charts/web/charts/there/Chart.yaml": "apiVersion: v2\nname: there\nversion: 1.0.0\n",
	}
	for name, c := range map[string]struct {
		dependencies string
		more         map[string]string
		made         []string
		says         string
		warns        bool
	}{
		"of the repo": {
			dependencies: "- {name: common, version: ^1.0.0, repository: \"file://../common\"}\n",
			made:         []string{"from-common from charts/common/templates/cm.yaml", "from-web from charts/web/templates/cm.yaml"},
		},
		"under an alias": {
			dependencies: "- {name: common, version: 1.2.0, alias: base, repository: \"file://../common\"}\n",
			made:         []string{"from-base from charts/common/templates/cm.yaml", "from-web from charts/web/templates/cm.yaml"},
		},
		"vendored already": {
			dependencies: "- {name: there, version: 1.0.0, repository: \"file://../gone\"}\n",
			made:         []string{"from-web from charts/web/templates/cm.yaml"},
		},
		"another version": {
			dependencies: "- {name: common, version: ^2.0.0, repository: \"file://../common\"}\n",
			says:         "the dependency common wants version ^2.0.0, and the chart of the repo has 1.2.0",
		},
		"not there": {
			dependencies: "- {name: gone, version: 1.0.0, repository: \"file://../gone\"}\n",
			says:         "there is no such chart in the repo",
		},
		"out of the repo": {
			dependencies: "- {name: common, version: 1.2.0, repository: \"file://../../../common\"}\n",
			says:         "there is no such chart in the repo",
		},
		"by an absolute path": {
			dependencies: "- {name: common, version: 1.2.0, repository: \"file:///charts/common\"}\n",
			says:         "there is no such chart in the repo",
		},
		"of a registry": {
			dependencies: "- {name: common, version: 1.2.0, repository: \"file://../common\"}\n" +
				"- {name: redis, version: 1.0.0, repository: \"oci://r.example.com/charts\"}\n",
			says: "the chart web depends on redis, which is not below its charts folder: its objects are not rendered", warns: true,
		},
		"without an address": {
			dependencies: "- {name: redis, version: 1.0.0}\n",
			says:         "the chart web depends on redis, which is not below its charts folder",
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := maps.Clone(common)
			files["charts/web/Chart.yaml"] = web + c.dependencies
			repo, fleet := ownRepo(t, "", files)
			made, findings := madeBy(t, repo, fleet)
			if !slices.Equal(made, c.made) {
				t.Errorf("made %q, want %q", made, c.made)
			}
			if c.says == "" {
				if len(findings) > 0 {
					t.Error(findings)
				}
				return
			}
			if len(findings) != 1 || (findings.Err() == nil) != c.warns || !strings.Contains(findings[0].Summary, c.says) {
				t.Errorf("got %v, want one (a warning: %v) with %q", findings, c.warns, c.says)
			}
		})
	}
}

// What a chart says of values that nobody can see is no error of the repo, and any other fault of the chart is.
func TestValuesThatCannotBeSeen(t *testing.T) {
	const (
		secret    = "  valuesFrom: [{kind: Secret, name: hidden}]\n"
		configMap = "  valuesFrom: [{kind: ConfigMap, name: hidden}]\n"
		required  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made}\ndata: {a: {{ required \"password\" .Values.password }}}\n"
		fixed     = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made}\n"
		schema    = `{"required": ["password"], "properties": {"replicas": {"type": "integer"}}}`
	)
	for name, c := range map[string]struct {
		spec, template, schema, chart, says string
		warns, made                         bool
	}{
		"required, of a Secret":    {spec: secret, template: required, says: "without the values of Secret hidden, so", warns: true},
		"required, of a ConfigMap": {spec: configMap, template: required, says: "without the values of ConfigMap hidden, so", warns: true},
		"a schema, and a Secret":   {spec: secret, template: fixed, schema: schema, says: "without the values of Secret hidden, so", warns: true},
		"a variable": {
			spec: "  values: {password: a, replicas: \"${REPLICAS}\"}\n", template: fixed, schema: schema, warns: true,
			says: "without the variables",
		},
		"no need of the Secret":        {spec: secret, template: fixed, says: "this is rendered without them", warns: true, made: true},
		"all is there":                 {template: required, says: "password"},
		"a schema, and all is there":   {spec: "  values: {replicas: a}\n", template: fixed, schema: schema},
		"a chart for others":           {spec: secret, template: fixed, chart: "kubeVersion: \">=9.0.0\"\n", says: "the chart wants Kubernetes"},
		"a schema that cannot be read": {spec: secret, template: fixed, schema: "{"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{
				"charts/web/templates/cm.yaml": c.template,
				"charts/web/Chart.yaml":        "apiVersion: v2\nname: web\nversion: 1.0.0\n" + c.chart,
			}
			if c.schema != "" {
				files["charts/web/values.schema.json"] = c.schema
			}
			repo, fleet := ownRepo(t, c.spec, files)
			made, findings := madeBy(t, repo, fleet)
			if (len(made) > 0) != c.made {
				t.Errorf("made %q", made)
			}
			if (findings.Err() == nil) != c.warns || c.warns && len(findings) != 1 {
				t.Errorf("a warning: %v, and found %v", c.warns, findings)
			}
			if !slices.ContainsFunc(findings, func(f diag.Finding) bool { return strings.Contains(f.Summary, c.says) }) {
				t.Errorf("got %v, want %q", findings, c.says)
			}
		})
	}
}
