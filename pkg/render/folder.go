package render

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Folder builds one folder as Flux would, whether or not the fleet applies it. The objects belong to nobody, and Flux objects among them are not
// followed. A folder that is not there is a finding.
func (r *Renderer) Folder(ctx context.Context, dir string) ([]*Object, diag.Findings) {
	if !r.repo.isDir(dir) {
		return nil, diag.Findings{{Severity: diag.SeverityError, Rule: RulePath, File: dir, Summary: "there is no such folder"}}
	}
	defer r.cache.use()()
	built, findings := r.builds.build(ctx, dir, buildSpec{}, scope{})
	objects := make([]*Object, 0, len(built))
	for _, c := range built {
		objects = append(objects, &Object{
			APIVersion: c.APIVersion, Kind: c.Kind, Namespace: c.Metadata.Namespace, Name: c.Metadata.Name, JSON: c.json, Source: c.source, Template: c.template,
		})
	}
	return objects, findings
}
