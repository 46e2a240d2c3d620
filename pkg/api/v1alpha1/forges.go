package v1alpha1

import "strings"

// ForgeType is a kind of Git forge.
type ForgeType string

// The forges on which fleetctl can open pull requests.
const (
	ForgeGitHub ForgeType = "github"
	ForgeGitLab ForgeType = "gitlab"
	ForgeGitea  ForgeType = "gitea"
)

// Pipelines is the format of a forge's pipelines.
type Pipelines int

// The formats of pipelines.
const (
	WorkflowsOfGitHub Pipelines = iota // Gitea reads them as well
	PipelinesOfGitLab
)

// forges lists all forges. pkg/forge has a client for each.
var forges = []struct {
	name ForgeType
	// hosts are parts of host names that identify the forge.
	hosts     []string
	pipelines Pipelines
	// pipelineRight means that a token with the right to push needs another right to push pipelines.
	pipelineRight bool
	// deployKeys is the page of a repository that takes deploy keys, below the URL of the repository.
	deployKeys string
}{
	{
		name: ForgeGitHub, hosts: []string{"github"}, pipelines: WorkflowsOfGitHub, pipelineRight: true,
		deployKeys: "settings/keys/new",
	},
	{
		name: ForgeGitLab, hosts: []string{"gitlab"}, pipelines: PipelinesOfGitLab,
		deployKeys: "-/settings/repository#js-deploy-keys-settings",
	},
	{
		name: ForgeGitea, hosts: []string{"gitea", "forgejo", "codeberg.org"}, pipelines: WorkflowsOfGitHub,
		deployKeys: "settings/keys",
	},
}

// ForgeTypes returns all valid values of spec.git.forge.
func ForgeTypes() []ForgeType {
	var names []ForgeType
	for _, f := range forges {
		names = append(names, f.name)
	}
	return names
}

// ForgeNames returns the names of the forges for a sentence, with the text last before the last name: "github, gitlab or gitea".
func ForgeNames(last string) string {
	var names []string
	for _, f := range forges {
		names = append(names, string(f.name))
	}
	n := len(names) - 1
	return strings.Join(names[:n], ", ") + last + names[n]
}

// ForgeOf returns the forge that a host's name suggests, or "".
func ForgeOf(host string) ForgeType {
	host = strings.ToLower(host)
	for _, f := range forges {
		for _, part := range f.hosts {
			if strings.Contains(host, part) {
				return f.name
			}
		}
	}
	return ""
}

// Pipelines returns the format of the forge's pipelines, and false for an unknown forge.
func (t ForgeType) Pipelines() (Pipelines, bool) {
	for _, f := range forges {
		if f.name == t {
			return f.pipelines, true
		}
	}
	return 0, false
}

// HasPipelineRight tells whether a token with the right to push to this forge needs another right to push pipelines.
func (t ForgeType) HasPipelineRight() bool {
	for _, f := range forges {
		if f.name == t {
			return f.pipelineRight
		}
	}
	return false
}

// DeployKeyPage returns the address of the page on which the forge takes a deploy key. It returns "" for other Git servers.
func (g Git) DeployKeyPage() string {
	u, err := g.ParseURL()
	if err != nil {
		return ""
	}
	page := ""
	for _, f := range forges {
		if f.name == g.ForgeType() {
			page = f.deployKeys
		}
	}
	if u.Hostname() == "bitbucket.org" { // fleetctl opens no pull requests there, but it takes deploy keys
		page = "admin/access-keys/"
	}
	if page == "" {
		return ""
	}
	return "https://" + u.Hostname() + "/" + strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git") + "/" + page
}
