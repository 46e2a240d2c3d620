package scaffold

import (
	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// The files that a forge reads its pipelines from.
const (
	gitHubWorkflow = ".github/workflows/fleet.yaml"
	gitLabPipeline = ".gitlab-ci.yml"
	gitLabFleet    = ".gitlab/fleet.gitlab-ci.yml"
)

// CIFiles make the pipeline that validates each pull request and says what it does to clusters, and the configuration with which Renovate keeps
// Flux, providers and charts current. version is the fleetctl that the pipeline installs. Errors: an unknown forge.
func CIFiles(forge v1alpha1.ForgeType, version string) ([]manifest.File, error) {
	format, known := forge.Pipelines()
	if !known {
		return nil, diag.Usage("one of "+v1alpha1.ForgeNames(", "), "unknown forge %q", forge)
	}
	templates := map[string]string{gitHubWorkflow: "github.yaml"}
	if format == v1alpha1.PipelinesOfGitLab {
		templates = map[string]string{gitLabPipeline: "gitlab-include.yaml", gitLabFleet: "gitlab.yaml"}
	}
	templates["renovate.json"] = "renovate.json"
	var out []manifest.File
	for target, name := range templates {
		content, err := execute("ci/"+name, struct{ Version string }{version})
		if err != nil {
			return nil, err
		}
		out = append(out, manifest.File{Path: target, Content: content})
	}
	return sorted(out), nil
}

// IncludeFleet is what a team's own pipeline of GitLab needs to have the fleet's.
const IncludeFleet = "include: [{local: " + gitLabFleet + "}]"
