package render

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/resmap"
	kustypes "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/resid"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// idlePatches reports the patches of a Flux Kustomization whose target matches none of its objects. Neither kustomize nor Flux reports
// them. idlePatches ignores a target that is a whole kind, because such a patch may be for later objects. The patches that keep the
// clusters of an environment at its channel are an example.
func idlePatches(it *item, objects []*content) diag.Findings {
	var out diag.Findings
	for i, p := range it.spec.Patches {
		if p.Target == nil || !isOne(p.Target.Name) || deletes(p.Patch) {
			continue
		}
		target := patchOf(p).Target
		selects, err := kustypes.NewSelectorRegex(target)
		if err != nil {
			continue // kustomize has reported it
		}
		matches := func(c *content) bool {
			return selects.MatchName(c.Metadata.Name) && selects.MatchNamespace(c.Metadata.Namespace) &&
				(target.Kind == "" || matchesKind(selects, c))
		}
		// Targets use the names and namespaces before these changes, which are not known here.
		if it.spec.NamePrefix != "" || it.spec.NameSuffix != "" || it.spec.TargetNamespace != "" || slices.ContainsFunc(objects, matches) {
			continue
		}
		out = append(out, diag.Finding{
			Severity: diag.SeverityWarning, Rule: RulePatch, File: it.k.Source.File, Line: it.k.Source.Line,
			Summary: fmt.Sprintf("%s: spec.patches[%d] changes nothing: no object is %s", it.k.Owner, i, describe(target)),
			Hint:    "correct its target, or remove it",
		})
	}
	return out
}

func matchesKind(selects *kustypes.SelectorRegex, c *content) bool {
	group, version := resid.ParseGroupVersion(c.APIVersion)
	return selects.MatchGvk(resid.NewGvk(group, version, c.Kind))
}

// idlePatches reports the idle patches of all kustomizations in a build: of the folder dir, which was built, and of the folders below it.
func (c *closure) idlePatches(disk filesys.FileSystem, dir string, built resmap.ResMap) diag.Findings {
	var out diag.Findings
	for _, folder := range slices.Sorted(maps.Keys(c.patched)) {
		result := built
		if folder != dir {
			var err error
			if result, err = kustomizeAgain(disk, path.Join("/", folder), c.openAPI); err != nil {
				continue // it was built as a part of another folder, and may not build alone
			}
		}
		out = append(out, c.patched[folder].idle(result)...)
	}
	return out
}

// kustomizeAgain builds a folder alone that was built as a part of another one.
func kustomizeAgain(disk filesys.FileSystem, dir string, openAPI bool) (resmap.ResMap, error) {
	kustomizing.Lock()
	defer kustomizing.Unlock()
	return kustomizeNow(disk, dir, openAPI)
}

// idle reports the patches of a kustomization.yaml whose target matches no object of the built folder.
func (k *kustFile) idle(built resmap.ResMap) diag.Findings {
	var out diag.Findings
	for i, p := range k.Patches {
		if p.Target == nil || p.Target.Name != "" && !isOne(p.Target.Name) || deletes(p.Patch) {
			continue
		}
		found, err := built.Select(*p.Target)
		if err != nil || len(found) > 0 {
			continue
		}
		at := k.at("patches", i, "target")
		out = append(out, diag.Finding{
			Severity: diag.SeverityWarning, Rule: RulePatch, File: at.file, Line: at.line, Column: at.column,
			Summary: fmt.Sprintf("patches[%d] changes nothing: no object is %s", i, describe(p.Target)), Hint: "correct its target, or remove it",
		})
	}
	return out
}

// isOne tells whether the name in a target is the name of one object, and not a pattern.
func isOne(name string) bool { return name != "" && !strings.ContainsAny(name, `*+?|()[]{}^$\`) }

// deletes tells whether a patch may delete its target.
func deletes(patch string) bool { return strings.Contains(patch, "$patch") }

// describe describes a target in words.
func describe(t *kustypes.Selector) string {
	var parts []string
	for _, p := range []string{t.Kind, strings.TrimPrefix(t.Namespace+"/"+t.Name, "/")} {
		if p != "" {
			parts = append(parts, fmt.Sprintf("%.60s", p))
		}
	}
	for what, p := range map[string]string{"with the labels": t.LabelSelector, "with the annotations": t.AnnotationSelector} {
		if p != "" {
			parts = append(parts, what+" "+p)
		}
	}
	return strings.Join(parts, " ")
}
