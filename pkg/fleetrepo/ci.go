package fleetrepo

import (
	"cmp"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// AddCI adds the pipeline for pull requests and the configuration of Renovate to the repo. Existing files stay as they
// are. If forge is empty, spec.git names it. The pipeline installs fleetctl in the given version. Error: a forge that
// is not known.
func (r *Repo) AddCI(forge v1alpha1.ForgeType, version string) (*Edit, error) {
	forge = cmp.Or(forge, r.Fleet.Spec.Git.ForgeType())
	if forge == "" {
		return nil, diag.Usage("say which it is with --forge "+v1alpha1.ForgeNames(" or "),
			"spec.git of %s does not tell which forge has the fleet repo", v1alpha1.FileName)
	}
	files, err := scaffold.CIFiles(forge, version)
	if err != nil {
		return nil, err
	}
	missing := scaffold.Missing(files, r.exists)
	e := &Edit{Summary: "Validate pull requests, and say what they do"}
	e.Changes.Write(missing...)
	if format, _ := forge.Pipelines(); format == v1alpha1.PipelinesOfGitLab && r.exists(".gitlab-ci.yml") {
		e.Notes = append(e.Notes, "The repo already has its own pipeline: add `"+scaffold.IncludeFleet+"` in .gitlab-ci.yml.")
	}
	if forge == v1alpha1.ForgeGitHub {
		e.Notes = append(e.Notes, "GitHub takes workflows only from a token with the right to write them (scope workflow).")
	}
	return e, nil
}
