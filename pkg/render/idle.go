package render

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/fluxcd/pkg/apis/kustomize"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	kustypes "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/resid"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// idlePatches reports the patches of a Flux Kustomization whose target matches none of its objects. Neither kustomize nor Flux reports
// them.
func idlePatches(it *item, objects []*content) diag.Findings {
	var out diag.Findings
	idle := idleTargets(it.spec.Patches, objects)
	for _, i := range slices.Sorted(maps.Keys(idle)) {
		out = append(out, diag.Finding{
			Severity: diag.SeverityWarning, Rule: RulePatch, File: it.k.Source.File, Line: it.k.Source.Line,
			Summary: fmt.Sprintf("%s: spec.patches[%d] changes nothing: no object is %s", it.k.Owner, i, idle[i].target), Hint: idle[i].hint,
		})
	}
	return out
}

// idleTarget is the target of a patch that matches no object, in words.
type idleTarget struct{ target, hint string }

// idleTargets returns the targets that match none of the objects, by the indices of their patches. It ignores a target that is a whole
// kind, because such a patch may be for later objects. The patches that keep the clusters of an environment at its channel are an example.
// But a kind that is mistyped is for no later object either.
func idleTargets(patches []kustomize.Patch, objects []*content) map[int]idleTarget {
	out := map[int]idleTarget{}
	for i, p := range patches {
		if p.Target == nil || deletes(p.Patch) || reidentifies(p.Patch) {
			continue
		}
		target := patchOf(p).Target
		if !isOne(target.Name) {
			if meant := meantKind(target, objects); meant != "" {
				out[i] = idleTarget{describe(target), "did you mean " + meant + "?"}
			}
			continue
		}
		selects, err := kustypes.NewSelectorRegex(target)
		if err != nil {
			continue // kustomize has reported it
		}
		matches := func(c *content) bool {
			return (selects.MatchName(c.Metadata.Name) || c.before.name && strings.Contains(c.Metadata.Name, target.Name)) &&
				(selects.MatchNamespace(c.Metadata.Namespace) || c.before.namespace) &&
				(target.Kind == "" || matchesKind(selects, c))
		}
		if !slices.ContainsFunc(objects, matches) {
			out[i] = idleTarget{describe(target), idleHint}
		}
	}
	return out
}

// familiarKinds are kinds that patches are often for.
var familiarKinds = []string{
	"Bucket", "ConfigMap", "CronJob", "DaemonSet", "Deployment", "GitRepository", "HelmChart", "HelmRelease", "HelmRepository", "Ingress",
	"Kustomization", "Namespace", "OCIRepository", "Secret", "Service", "ServiceAccount", "StatefulSet",
}

// meantKind is the kind that the target of a patch means but spells wrongly, if the target has no name; "" otherwise.
func meantKind(target *kustypes.Selector, objects []*content) string {
	if target.Name != "" || !isOne(target.Kind) || slices.Contains(familiarKinds, target.Kind) {
		return ""
	}
	kinds := slices.Clone(familiarKinds)
	for _, c := range objects {
		if c.Kind == target.Kind {
			return ""
		}
		kinds = append(kinds, c.Kind)
	}
	if i := slices.IndexFunc(kinds, func(kind string) bool { return strings.EqualFold(kind, target.Kind) }); i >= 0 {
		return kinds[i]
	}
	return diag.OneLetterOff(target.Kind, kinds)
}

const idleHint = "correct its target, or remove it"

func matchesKind(selects *kustypes.SelectorRegex, c *content) bool {
	group, version := resid.ParseGroupVersion(c.APIVersion)
	return selects.MatchGvk(resid.NewGvk(group, version, c.Kind))
}

// changed says what the objects of a build may have had different when kustomize looked for the targets of patches. Kustomize adds
// prefixes, suffixes, namespaces and the hashes of generated objects only afterwards, and the result does not say what was there before.
type changed struct{ name, namespace bool }

// changes returns what a build changes of its objects after their patches. spec has the fields of the Flux Kustomization.
func (c *closure) changes(spec buildSpec) changed {
	out := changed{name: spec.NamePrefix+spec.NameSuffix != "", namespace: spec.TargetNamespace != ""}
	for _, k := range c.tops {
		plugins := len(k.Transformers)+len(k.Generators) > 0
		out.name = out.name || plugins || k.NamePrefix+k.NameSuffix != "" || len(k.ConfigMapGenerator)+len(k.SecretGenerator) > 0
		out.namespace = out.namespace || plugins || k.Namespace != ""
	}
	return out
}

// of marks objects with what the build changed of them.
func (b changed) of(objects []*content) []*content {
	for _, o := range objects {
		o.before = b
	}
	return objects
}

// result is a built folder. Targets are looked for in it.
type result struct {
	resmap.ResMap
	before changed
}

// has tells whether a target matches an object, or may have matched one before kustomize changed the names.
func (r result) has(target *kustypes.Selector) bool {
	found, err := r.Select(*target)
	if err != nil || len(found) > 0 {
		return true
	}
	like := *target
	if r.before.namespace {
		like.Namespace = ""
	}
	if r.before.name && isOne(target.Name) {
		like.Name = ""
	}
	found, err = r.Select(like)
	return err != nil || slices.ContainsFunc(found, func(o *resource.Resource) bool {
		return like.Name != "" || strings.Contains(o.GetName(), target.Name)
	})
}

// idleFields reports the fields of all kustomizations in a build that look for objects and find none: of the folder dir, which was built,
// and of the folders below it.
func (c *closure) idleFields(disk filesys.FileSystem, dir string, spec buildSpec, built resmap.ResMap) diag.Findings {
	var out diag.Findings
	before := c.changes(spec)
	for _, folder := range slices.Sorted(maps.Keys(c.aimed)) {
		objects := built
		if folder != dir {
			var err error
			if objects, err = kustomizeAgain(disk, path.Join("/", folder), c.openAPI); err != nil {
				continue // it was built as a part of another folder, and may not build alone
			}
		}
		out = append(out, c.idle(folder, c.aimed[folder], result{objects, before})...)
	}
	return append(out, c.idleParts(disk, dir, spec, result{built, before})...)
}

// kustomizeAgain builds a folder alone that was built as a part of another one.
func kustomizeAgain(disk filesys.FileSystem, dir string, openAPI bool) (resmap.ResMap, error) {
	kustomizing.Lock()
	defer kustomizing.Unlock()
	return kustomizeNow(disk, dir, openAPI)
}

// aims tells whether a kustomization has fields that look for objects.
func (k *kustFile) aims() bool {
	return len(k.Images) > 0 || len(k.Replacements) > 0 ||
		slices.ContainsFunc(k.Patches, func(p kustypes.Patch) bool { return p.Target != nil })
}

// idle reports the fields of a kustomization in folder that look for objects and find none in what was built.
func (c *closure) idle(folder string, k *kustFile, found result) diag.Findings {
	return slices.Concat(c.idlePatches(folder, k, found), c.idleReplacements(folder, k, found), c.idleImages(folder, k, found))
}

// idlePatches reports the patches of a kustomization.yaml whose target matches no object of the built folder.
func (c *closure) idlePatches(dir string, k *kustFile, built result) diag.Findings {
	var out diag.Findings
	for i, p := range k.Patches {
		text := p.Patch
		if p.Path != "" {
			text = c.text(dir, p.Path)
		}
		if o := p.Options; o != nil && (o.AllowNameChange || o.AllowKindChange) || reidentifies(text) {
			return nil // the targets of this patch and of later ones may be names that no object has any more
		}
		if p.Target == nil || p.Target.Name != "" && !isOne(p.Target.Name) || deletes(text) || built.has(p.Target) {
			continue
		}
		out = append(out, k.idle(fmt.Sprintf("patches[%d] changes nothing: no object is %s", i, describe(p.Target)), "patches", i, "target"))
	}
	return out
}

// idle is the finding that a field of a kustomization.yaml does nothing.
func (k *kustFile) idle(summary string, field ...any) diag.Finding {
	at := k.at(field...)
	return diag.Finding{
		Severity: diag.SeverityWarning, Rule: RulePatch, File: at.file, Line: at.line, Column: at.column, Summary: summary, Hint: idleHint,
	}
}

// text returns the content of a file that a kustomization in dir names.
func (c *closure) text(dir, name string) string {
	clean, _ := inside(dir, name)
	return string(c.files[clean])
}

// isOne tells whether the name in a target is the name of one object, and not a pattern.
func isOne(name string) bool { return name != "" && !strings.ContainsAny(name, `*+?|()[]{}^$\`) }

// deletes tells whether a patch may delete its target.
func deletes(patch string) bool { return strings.Contains(patch, "$patch") }

// identifying matches the paths of the fields by which targets find an object, in a JSON patch.
var identifying = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(^|[\s"'])/(kind|apiVersion|metadata(/name(space)?)?)($|[\s"',}])`)
})

// reidentifies tells whether a JSON patch may change the name, namespace or kind of its target.
func reidentifies(patch string) bool { return identifying().MatchString(patch) }

// describe describes a target in words.
func describe(t *kustypes.Selector) string {
	var parts []string
	for _, p := range []string{t.Kind, strings.TrimPrefix(t.Namespace+"/"+t.Name, "/")} {
		if p != "" {
			parts = append(parts, fmt.Sprintf("%.60s", p))
		}
	}
	if t.LabelSelector != "" {
		parts = append(parts, "with the labels "+t.LabelSelector)
	}
	if t.AnnotationSelector != "" {
		parts = append(parts, "with the annotations "+t.AnnotationSelector)
	}
	return strings.Join(parts, " ")
}
