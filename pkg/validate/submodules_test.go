package validate

import (
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/render"
)

// What a submodule holds is not in the repo: nothing of it is rendered or judged, and each that Flux would take in is named. A hostile
// .gitmodules leads nowhere.
func TestSubmodules(t *testing.T) {
	known := knownKinds(t)
	const broken = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: of-another, namespace: default}\ndat: {}\n"
	for name, change := range map[string]func(files map[string]string){
		"checked out": func(files map[string]string) {
			files["infra/sub/.git"], files["infra/sub/a.yaml"] = "gitdir: ../../.git/modules/sub\n", broken
		},
		"a clone": func(files map[string]string) {
			files["infra/sub/.git/HEAD"], files["infra/sub/deep/a.yaml"] = "ref: refs/heads/main\n", broken
		},
		"not checked out": func(files map[string]string) {
			files["infra/sub/"] = ""
			files[".gitmodules"] = "[submodule \"x\"]\n\tpath = infra/sub\n\turl = --upload-pack=touch /tmp/x\n"
		},
		"hostile": func(files map[string]string) {
			files["infra/sub/"] = ""
			files[".gitmodules"] = "[submodule \"..\"]\n\tpath = ../../etc\n\tpath = /etc\n\tpath = .\n\tpath = \n\tpath=\"infra/sub\"\n" +
				"\tpath = infra\n\tpath = infra/sub/../sub\n\tupdate = !touch x\n\tpath\n"
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := rawRepo()
			change(files)
			result := validate(t, files, known)
			found := ofRule(result.Findings, RuleForeign)
			if len(found) != 1 || found[0].File != "infra/sub" || !strings.Contains(found[0].Summary, "another repository's") {
				t.Errorf("findings: %v", found)
			}
			if found := ofRule(result.Findings, RuleUnknownField); len(found) > 0 {
				t.Errorf("what is in it was judged: %v", found)
			}
			if hasObject(t, files, "ConfigMap", "of-another") {
				t.Error("what is in it was rendered")
			}
		})
	}
}

// A submodule whose files Flux needs is what the hint of the error names; one that nothing applies is nobody's business.
func TestPathsInSubmodules(t *testing.T) {
	known := knownKinds(t)
	files := rawRepo()
	files["docs/theme/.git"], files["docs/theme/a.yaml"] = "gitdir: x\n", "kind: A\n"
	if found := ofRule(validate(t, files, known).Findings, RuleForeign); len(found) > 0 {
		t.Errorf("a folder that Flux does not apply: %v", found)
	}
	files["vendored/.git"], files["vendored/app/a.yaml"] = "gitdir: x\n", "kind: A\n"
	files["clusters/mgmt/a.yaml"] = kustomizationOf("a", "./vendored/app", "{kind: GitRepository, name: flux-system}")
	files["infra/kustomization.yaml"] = "resources: [../vendored/app/a.yaml]\n"
	result := validate(t, files, known)
	found := slices.Concat(ofRule(result.Findings, RuleMissingPath), ofRule(result.Findings, renderedRules[render.RuleKustomize]))
	if len(found) != 2 {
		t.Errorf("findings: %v", result.Findings)
	}
	for _, f := range found {
		if !strings.Contains(f.Hint, "reads no submodule") {
			t.Errorf("%s\n%s", f, f.Hint)
		}
	}
}

// A source that takes the files of submodules is told to hand on more than what is rendered.
func TestSourceWithSubmodules(t *testing.T) {
	files := rawRepo()
	sync := "clusters/mgmt/flux-system/gotk-sync.yaml"
	files[sync] = strings.Replace(files[sync], "spec:", "spec:\n  recurseSubmodules: true", 1)
	if !strings.Contains(files[sync], "recurse") {
		t.Fatal(files[sync])
	}
	found := ofRule(validate(t, files, knownKinds(t)).Findings, RuleForeign)
	if len(found) != 1 || !strings.Contains(found[0].Summary, "recurseSubmodules") {
		t.Errorf("findings: %v", found)
	}
}
