package render_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// A HelmRelease is rendered from what is to stand in its file, with the chart in the repo, and where there is none with that of fleetctl.
// One that cannot be known from its file is taken for good.
func TestDeclared(t *testing.T) {
	fleet, err := v1alpha1.Decode("fleet.yaml", []byte(fleetYAML))
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{
		"charts/own/Chart.yaml":          {Data: []byte("apiVersion: v2\nname: own\nversion: 1.0.0\n")},
		"charts/own/templates/rule.yaml": {Data: []byte("{{- if gt (len .Values.pools) 1 }}{{ fail \"pools: one is enough\" }}{{ end }}\n")},
	}
	const two = "{pools: [{name: a, replicas: 1}, {name: b, replicas: 1}]}"
	const azure = "{kubernetesVersion: v1.36.3, location: westeurope, pools: [{name: a, replicas: 1, size: Standard_D4s_v5}]}"
	for name, tt := range map[string]struct{ spec, want string }{
		"good": {"chart: {spec: {chart: ./charts/own}}\n  values: {pools: []}", ""},
		"refused": {
			"chart: {spec: {chart: ./charts/own}}\n  values: " + two,
			"cluster.yaml:2: HelmRelease a/a: execution error at (own/templates/rule.yaml:1:37): pools: one is enough",
		},
		"of fleetctl":    {"chart: {spec: {chart: ./charts/azure-aks}}\n  values: " + azure, "AKS wants at least one of mode System"},
		"values as well": {"chart: {spec: {chart: ./charts/own}}\n  valuesFrom: [{kind: ConfigMap, name: x}]\n  values: " + two, ""},
		"variables":      {"chart: {spec: {chart: ./charts/own}}\n  values: {pools: [\"${POOL}\", b]}", ""},
		"no such chart":  {"chart: {spec: {chart: ./charts/none}}\n  values: " + two, ""},
		"a chart of others": {
			"chart: {spec: {chart: charts/own, sourceRef: {kind: HelmRepository, name: x}}}\n  values: " + two, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			const file = "providers/docker/v1/clusters/dev/a/cluster.yaml"
			content := "# a\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a, namespace: a}\nspec:\n  interval: " +
				"10m\n  " + tt.spec + "\n"
			found := render.New(files, fleet, render.Options{}).Declared(file, []byte(content))
			switch {
			case tt.want == "" && len(found) > 0:
				t.Errorf("got %v", found)
			case tt.want != "" && (found.Err() == nil || !strings.Contains(found.Error(), tt.want)):
				t.Errorf("got %v, want %s", found, tt.want)
			}
		})
	}
}
