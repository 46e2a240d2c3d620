package validate

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// others returns the findings that another list does not have.
func others(found, known diag.Findings) diag.Findings {
	return slices.DeleteFunc(slices.Clone(found), func(f diag.Finding) bool {
		return slices.ContainsFunc(known, func(k diag.Finding) bool { return k.File == f.File && k.Line == f.Line && k.Summary == f.Summary })
	})
}

// A file that Git ignores and does not track is in no commit, so a laptop finds what a pipeline finds. A file that is tracked in spite of
// that is judged, and so is what fleet.yaml names.
func TestFilesThatGitIgnores(t *testing.T) {
	const (
		secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: NAME, namespace: default}\nstringData: {a: hunter2}\n"
		crds   = "apiVersion: fleetctl.dev/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n" +
			"  git: {url: https://git.example.com/acme/fleet}\n  managementClusters: [{name: mgmt, path: clusters/mgmt}]\n" +
			"  validate: {crds: [.cache/crds]}\n"
		crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.example.com}\nspec:\n" +
			"  group: example.com\n  names: {kind: A, plural: a}\n  scope: Namespaced\n  versions:\n  - name: v1\n    served: true\n" +
			"    storage: true\n    schema: {openAPIV3Schema: {type: object}}\n"
	)
	files := rawRepo()
	clean := validate(t, files, knownKinds(t))
	ignored := map[string]string{
		"edge-1.kubeconfig":                  "apiVersion: v1\nkind: Config\nusers: [{name: a, user: {token: c2VjcmV0LXRva2VuLXZhbHVl}}]\n",
		"infra/local.yaml":                   strings.ReplaceAll(secret, "NAME", "local"),
		"terraform/.terraform/modules/m.yml": "a: [b\n",
		"infra/.terraform/values.yaml":       "a: %{ for }\n",
	}
	maps.Copy(files, ignored)
	files[".gitignore"] = "*.kubeconfig\nlocal.yaml\n.terraform/\ntracked.yaml\n/.cache/\nfleet.yaml\n"
	dir := write(t, files)
	gittest.Git(t, dir, "init", "-q", "-b", "main")
	gittest.Git(t, dir, "add", "-A")
	look := func(t *testing.T, dir, of string) *Result {
		t.Helper()
		result, err := Run(t.Context(), Options{Dir: dir, CopyOf: of, known: knownKinds(t), Offline: true, CacheDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	result := look(t, dir, "")
	report(t, others(result.Findings, clean.Findings))
	if result.Objects != clean.Objects || result.Files != clean.Files+1 { // the .gitignore
		t.Errorf("%d objects in %d files, want %d in %d", result.Objects, result.Files, clean.Objects, clean.Files+1)
	}
	// The copy in which an edit is judged is no repository.
	report(t, others(look(t, write(t, files), dir).Findings, clean.Findings))

	files["infra/tracked.yaml"] = strings.ReplaceAll(secret, "NAME", "tracked")
	files["fleet.yaml"], files[".cache/crds/a.yaml"] = crds, crd
	dir = write(t, files)
	gittest.Git(t, dir, "init", "-q", "-b", "main")
	gittest.Git(t, dir, "add", "-A")
	gittest.Git(t, dir, "add", "-f", "infra/tracked.yaml")
	result = look(t, dir, "")
	if found := ofRule(result.Findings, RulePlainSecret); len(found) != 1 || found[0].File != "infra/tracked.yaml" {
		t.Errorf("secrets: %v", found)
	}
	if found := slices.Concat(ofRule(result.Findings, RuleMissingPath), ofRule(result.Findings, RuleUnused)); len(found) > 0 {
		t.Errorf("the CRDs that fleet.yaml names: %v", found)
	}
}
