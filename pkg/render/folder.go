package render

import (
	"context"
	"encoding/json"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Folder builds one folder as Flux would, whether or not the fleet applies it. The objects have no Owner, and Flux objects among them are
// not followed. A missing folder is a finding.
func (r *Renderer) Folder(ctx context.Context, dir string) ([]*Object, diag.Findings) {
	if !r.repo.isDir(dir) {
		return nil, diag.Findings{{Severity: diag.SeverityError, Rule: RulePath, File: dir, Summary: "there is no such folder"}}
	}
	defer r.cache.use()()
	built := r.builds.build(ctx, dir, buildSpec{}, scope{})
	objects := make([]*Object, 0, len(built.objects))
	for _, c := range built.objects {
		objects = append(objects, &Object{
			APIVersion: c.APIVersion, Kind: c.Kind, Namespace: c.Metadata.Namespace, Name: c.Metadata.Name, JSON: c.json,
			Source: c.source, Template: c.template,
		})
	}
	return objects, built.findings
}

// Release renders one HelmRelease, given as JSON, with the chart in a folder, instead of the chart that the release names. configMaps has
// the data of the ConfigMaps in the release's namespace.
func (r *Renderer) Release(release []byte, chart string, configMaps map[string]map[string]string) ([]*Object, diag.Findings) {
	o := &Object{JSON: release}
	var named struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(release, &named); err != nil {
		return nil, diag.Findings{{Severity: diag.SeverityError, Rule: RuleSyntax, Summary: err.Error()}}
	}
	o.APIVersion, o.Kind, o.Namespace, o.Name = named.APIVersion, named.Kind, named.Metadata.Namespace, named.Metadata.Name
	j, err := newJob(o)
	if err != nil {
		return nil, j.failed(RuleSyntax, err)
	}
	j.release.Chart, j.chart = chart, &chartSource{chart: chart}
	j.configMap = func(name string) (configMap, bool) {
		data, ok := configMaps[name]
		return configMap{data: data}, ok
	}
	made, findings := r.renderRelease(j)
	objects := make([]*Object, 0, len(made))
	for _, c := range made {
		objects = append(objects, &Object{
			APIVersion: c.APIVersion, Kind: c.Kind, Namespace: c.Metadata.Namespace, Name: c.Metadata.Name, JSON: c.json, Template: c.template,
		})
	}
	return objects, findings
}
