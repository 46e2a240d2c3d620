package scaffold

import (
	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// The paths of the files with the pipelines of each forge.
const (
	gitHubWorkflow = ".github/workflows/fleet.yaml"
	gitLabPipeline = ".gitlab-ci.yml"
	gitLabFleet    = ".gitlab/fleet.gitlab-ci.yml"
)

// CIFiles returns the pipeline that validates each pull request and reports its effects on clusters, and the configuration with which
// Renovate updates Flux, providers and charts. version is the version of fleetctl that the pipeline installs. Errors: an unknown forge.
func CIFiles(forge v1alpha1.ForgeType, version string) ([]manifest.File, error) {
	format, known := forge.Pipelines()
	if !known {
		return nil, diag.Usage("give one of "+v1alpha1.ForgeNames(", "), "unknown forge %q", forge)
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

// IncludeFleet is the line that includes the fleet's pipeline in a team's own pipeline of GitLab.
const IncludeFleet = "include: [{local: " + gitLabFleet + "}]"
