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
	var templates map[string]string
	switch forge {
	case v1alpha1.ForgeGitHub, v1alpha1.ForgeGitea: // Gitea reads GitHub's workflows
		templates = map[string]string{gitHubWorkflow: "github.yaml"}
	case v1alpha1.ForgeGitLab:
		templates = map[string]string{gitLabPipeline: "gitlab-include.yaml", gitLabFleet: "gitlab.yaml"}
	default:
		return nil, diag.Usage("one of github, gitlab, gitea", "unknown forge %q", forge)
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
