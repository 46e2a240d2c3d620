package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The examples of https://www.conventionalcommits.org/en/v1.0.0/#examples, and first lines that only look like them.
func TestParseConventionalCommit(t *testing.T) {
	for subject, want := range map[string]*ConventionalCommit{
		"feat: allow provided config object to extend other configs": {
			Type: "feat", Description: "allow provided config object to extend other configs",
		},
		"feat!: send an email to the customer when a product is shipped": {
			Type: "feat", Breaking: true, Description: "send an email to the customer when a product is shipped",
		},
		"feat(api)!: send an email to the customer when a product is shipped": {
			Type: "feat", Scope: "api", Breaking: true, Description: "send an email to the customer when a product is shipped",
		},
		"feat(lang): add Polish language":       {Type: "feat", Scope: "lang", Description: "add Polish language"},
		"docs: correct spelling of CHANGELOG":   {Type: "docs", Description: "correct spelling of CHANGELOG"},
		"FIX: prevent racing of requests":       {Type: "fix", Description: "prevent racing of requests"},
		`Revert "feat: add Polish language"`:    {Type: "revert", Description: `Revert "feat: add Polish language"`},
		"Add cluster demo to dev":               nil,
		"note: the types are a list":            nil,
		"feat:no blank":                         nil,
		"feat:  ":                               nil,
		"feat(): no scope":                      nil,
		"feat(a)(b): two scopes":                nil,
		"feat (api): a blank before the scope":  nil,
		"fixup! feat: add Polish language":      nil,
		" feat: a blank before the type":        nil,
		"feat: with a carriage return\r":        {Type: "feat", Description: "with a carriage return\r"},
		"":                                      nil,
		"Merge branch 'main' into 'production'": nil,
	} {
		got, ok := ParseConventionalCommit(subject)
		if want == nil {
			want = &ConventionalCommit{}
			if ok {
				t.Errorf("%q is taken for one", subject)
			}
		}
		if diff := cmp.Diff(*want, got); diff != "" {
			t.Errorf("%q (-want +got)\n%s", subject, diff)
		}
	}
}

// fleetctl's own commits follow the convention, and stay as they are without one.
func TestCommitMessage(t *testing.T) {
	f := &Fleet{}
	const message = "Add cluster demo to dev\n\nThe chart comes with it.\n"
	if got := f.CommitMessage(message); got != message {
		t.Errorf("without a convention: %q", got)
	}
	f.Spec.Releases.Commits = ConventionalCommits
	for given, want := range map[string]string{
		message:                          "feat: " + message,
		"Scale pool md-0 of demo to 3\n": "chore: Scale pool md-0 of demo to 3\n",
		"Revert 1a2b3c4d\n":              "revert: Revert 1a2b3c4d\n",
		"fix: it\n":                      "fix: it\n",
	} {
		if got := f.CommitMessage(given); got != want {
			t.Errorf("%q", got)
		}
	}
}
