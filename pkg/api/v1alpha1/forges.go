package v1alpha1

import "strings"

// ForgeType is a kind of Git forge.
type ForgeType string

// The forges that pull requests can be opened on.
const (
	ForgeGitHub ForgeType = "github"
	ForgeGitLab ForgeType = "gitlab"
	ForgeGitea  ForgeType = "gitea"
)

// Pipelines is the format that a forge reads its pipelines in.
type Pipelines int

// The formats of pipelines.
const (
	WorkflowsOfGitHub Pipelines = iota // Gitea reads them as well
	PipelinesOfGitLab
)

// forges is the one list of forges. pkg/forge has a client of each.
var forges = []struct {
	name ForgeType
	// hosts are the parts of a host's name that tell the forge.
	hosts     []string
	pipelines Pipelines
	// pipelineRight: a token that may push needs a further right before it may push pipelines.
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

// ForgeTypes are the forges that spec.git.forge may name.
func ForgeTypes() []ForgeType {
	var names []ForgeType
	for _, f := range forges {
		names = append(names, f.name)
	}
	return names
}

// ForgeNames lists the forges in a sentence, with last before the last forge: "github, gitlab or gitea".
func ForgeNames(last string) string {
	var names []string
	for _, f := range forges {
		names = append(names, string(f.name))
	}
	n := len(names) - 1
	return strings.Join(names[:n], ", ") + last + names[n]
}

// ForgeOf tells by a host's name which forge it is. It returns "" if the name does not tell.
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

// HasPipelineRight tells whether a token that may push to this forge needs a further right before it may push pipelines.
func (t ForgeType) HasPipelineRight() bool {
	for _, f := range forges {
		if f.name == t {
			return f.pipelineRight
		}
	}
	return false
}

// DeployKeyPage is the address at which the forge of the remote takes a deploy key. It returns "" for other Git servers.
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
	if u.Hostname() == "bitbucket.org" { // it opens no pull requests for fleetctl, but takes deploy keys
		page = "admin/access-keys/"
	}
	if page == "" {
		return ""
	}
	return "https://" + u.Hostname() + "/" + strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git") + "/" + page
}
