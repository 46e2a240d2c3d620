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

// forges is the one list of forges; pkg/forge has a file for each.
var forges = []struct {
	name ForgeType
	// hosts are the parts of a host's name that tell the forge.
	hosts     []string
	pipelines Pipelines
}{
	{ForgeGitHub, []string{"github"}, WorkflowsOfGitHub},
	{ForgeGitLab, []string{"gitlab"}, PipelinesOfGitLab},
	{ForgeGitea, []string{"gitea", "forgejo", "codeberg.org"}, WorkflowsOfGitHub},
}

// ForgeTypes are the forges that spec.git.forge may name.
func ForgeTypes() []ForgeType {
	var names []ForgeType
	for _, f := range forges {
		names = append(names, f.name)
	}
	return names
}

// ForgeNames lists them in a sentence, with what stands before the last one: github, gitlab or gitea.
func ForgeNames(last string) string {
	var names []string
	for _, f := range forges {
		names = append(names, string(f.name))
	}
	n := len(names) - 1
	return strings.Join(names[:n], ", ") + last + names[n]
}

// ForgeOf tells by a host's name which forge it is; "" where the name does not say.
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

// Pipelines is the format of the forge's pipelines; false where it is no forge that is known.
func (t ForgeType) Pipelines() (Pipelines, bool) {
	for _, f := range forges {
		if f.name == t {
			return f.pipelines, true
		}
	}
	return 0, false
}
