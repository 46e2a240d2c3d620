package v1alpha1

import (
	"regexp"
	"slices"
	"strings"
)

// Releases say how commits are named, and where a promotion publishes its release notes.
type Releases struct {
	// Commits is the convention for the first line of each commit: conventional, for Conventional Commits. `fleetctl validate
	// --commits-since` checks it, the commits of fleetctl follow it, and release notes are grouped by it. Default: none.
	Commits CommitConvention `json:"commits,omitempty"`
	// Forge makes a release at the forge of spec.git for each tag of a promotion, with its release notes. Default: false, notes are only in
	// the tag.
	Forge bool `json:"forge,omitempty"`
}

// CommitConvention is a convention for the first line of a commit's message.
type CommitConvention string

// ConventionalCommits is the convention of https://www.conventionalcommits.org/en/v1.0.0/: "type(scope)!: description".
const ConventionalCommits CommitConvention = "conventional"

// CommitTypes are the types that a first line may have. The specification knows feat and fix and allows others; the others here are the
// usual ones of @commitlint/config-conventional.
func CommitTypes() []string {
	return []string{"build", "chore", "ci", "docs", "feat", "fix", "perf", "refactor", "revert", "style", "test"}
}

// conventional matches the first line of a conventional commit.
var conventional = regexp.MustCompile(`^([A-Za-z]+)(\([^()\r\n]+\))?(!)?: +(\S.*)$`)

// ConventionalCommit is the first line of a conventional commit.
type ConventionalCommit struct {
	Type, Scope, Description string
	// Breaking means that the line marks a breaking change.
	Breaking bool
}

// ParseConventionalCommit reads the first line of a commit's message. ok is false if it does not follow the convention. Upper and lower
// case of the type do not matter. The line that `git revert` writes counts as a commit of the type revert.
func ParseConventionalCommit(subject string) (c ConventionalCommit, ok bool) {
	if strings.HasPrefix(subject, `Revert "`) && strings.HasSuffix(subject, `"`) {
		return ConventionalCommit{Type: "revert", Description: subject}, true
	}
	parts := conventional.FindStringSubmatch(subject)
	if len(parts) == 0 || !slices.Contains(CommitTypes(), strings.ToLower(parts[1])) {
		return ConventionalCommit{}, false
	}
	return ConventionalCommit{
		Type: strings.ToLower(parts[1]), Scope: strings.Trim(parts[2], "()"), Breaking: parts[3] != "", Description: parts[4],
	}, true
}

// CommitMessage returns the message of one of fleetctl's own commits as the fleet's convention wants it. What adds something is a feature,
// and all else is a chore.
func (f *Fleet) CommitMessage(message string) string {
	if f.Spec.Releases.Commits != ConventionalCommits {
		return message
	}
	subject, _, _ := strings.Cut(message, "\n")
	if _, ok := ParseConventionalCommit(subject); ok {
		return message
	}
	switch verb, _, _ := strings.Cut(subject, " "); verb {
	case "Add", "Enable":
		return "feat: " + message
	case "Revert":
		return "revert: " + message
	}
	return "chore: " + message
}

func (v *validator) releases(f *Fleet) {
	r := f.Spec.Releases
	if r.Commits != "" {
		v.oneOf("spec.releases.commits", "convention", string(r.Commits), []string{string(ConventionalCommits)})
	}
	if r.Forge && v.noRemote {
		v.warnf(RuleUnused, "spec.releases.forge", "remove it, or declare spec.git.url", "without a remote there is no forge for a release")
	}
}
