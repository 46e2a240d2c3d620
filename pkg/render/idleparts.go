package render

import (
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/fluxcd/pkg/apis/kustomize"
	kustypes "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// rulePart is the rule of RulePatch findings about something that is used in several places, before it is known whether one of the other
// places has the target.
const rulePart = "render-part"

// parts collects what things that are used in several places aim at in vain, by their names: Components, which look for the objects of
// whoever includes them, and HelmReleases of a base. Only what is in vain in each of the places is reported.
type parts struct {
	mu   sync.Mutex
	idle map[string]diag.Findings
}

// add adds what a thing aims at in vain in one more place.
func (p *parts) add(name string, found diag.Findings) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known := p.idle[name]
	switch {
	case p.idle == nil:
		p.idle = map[string]diag.Findings{name: found}
	case !known:
		p.idle[name] = found
	default:
		var both diag.Findings
		for _, f := range before {
			same := func(other diag.Finding) bool {
				return other.Line == f.Line && other.Column == f.Column && other.Summary == f.Summary
			}
			if i := slices.IndexFunc(found, same); i >= 0 {
				f.Hint = max(f.Hint, found[i].Hint) // the hint names what is there, and the places come in any order
				both = append(both, f)
			}
		}
		p.idle[name] = both
	}
}

// findings returns what is in vain in each place.
func (p *parts) findings() (out diag.Findings) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(p.idle)) {
		for _, f := range p.idle[name] {
			f.Rule, f.Gist = RulePatch, ""
			out = append(out, f)
		}
	}
	return out
}

// addBuild takes the findings about Components out of those of a build.
func (p *parts) addBuild(c *closure, findings diag.Findings) (rest diag.Findings) {
	byFolder := map[string]diag.Findings{}
	for _, f := range findings {
		if f.Rule == rulePart {
			byFolder[path.Dir(f.File)] = append(byFolder[path.Dir(f.File)], f)
		} else {
			rest = append(rest, f)
		}
	}
	for folder := range c.parts {
		if found := byFolder[folder]; findings.Err() == nil && len(c.left) == 0 {
			p.add(folder, found)
		} else {
			p.add(folder, nil) // what they look for may be in what is not built
		}
	}
	return rest
}

// idleParts reports the fields of Components that look for objects and find none in any of the folders that include the Component.
func (c *closure) idleParts(disk filesys.FileSystem, dir string, spec buildSpec, built result) diag.Findings {
	if len(c.parts) == 0 || c.hides(spec) {
		return nil
	}
	var all parts
	for _, folder := range slices.Sorted(maps.Keys(c.tops)) {
		if c.tops[folder].Kind == kustypes.ComponentKind {
			continue
		}
		with := c.componentsOf(folder, c.tops[folder].Components)
		if folder == dir {
			maps.Copy(with, c.componentsOf(dir, spec.Components))
		}
		c.addParts(&all, disk, dir, folder, with, built)
	}
	if c.tops[dir] == nil { // a folder without a kustomization.yaml
		c.addParts(&all, disk, dir, dir, c.componentsOf(dir, spec.Components), built)
	}
	out := all.findings()
	for i := range out {
		out[i].Rule = rulePart
	}
	return out
}

// addParts adds what the Components of a folder aim at in vain there.
func (c *closure) addParts(all *parts, disk filesys.FileSystem, dir, folder string, with map[string]bool, built result) {
	if !slices.ContainsFunc(slices.Collect(maps.Keys(with)), func(name string) bool { return c.parts[name] != nil }) {
		return
	}
	var err error
	if folder != dir {
		built.ResMap, err = kustomizeAgain(disk, path.Join("/", folder), c.openAPI)
	}
	for name := range with {
		switch k := c.parts[name]; {
		case k == nil:
		case err != nil: // it was built as a part of another folder, and may not build alone
			all.add(name, nil)
		default:
			all.add(name, c.idle(name, k, built))
		}
	}
}

// componentsOf returns the folders of Components, and of the Components that they include.
func (c *closure) componentsOf(dir string, names []string) map[string]bool {
	out := map[string]bool{}
	var add func(dir string, names []string)
	add = func(dir string, names []string) {
		for _, name := range names {
			folder, ok := inside(dir, name)
			if k := c.tops[folder]; ok && k != nil && !out[folder] {
				out[folder] = true
				add(folder, k.Components)
			}
		}
	}
	add(dir, names)
	return out
}

// hides tells whether the build may delete or rename objects, or rename their images, after a Component has changed them. The result does
// not say what was there.
func (c *closure) hides(spec buildSpec) bool {
	changes := func(text string) bool { return deletes(text) || reidentifies(text) }
	if slices.ContainsFunc(spec.Patches, func(p kustomize.Patch) bool { return changes(p.Patch) }) ||
		slices.ContainsFunc(spec.Images, func(i kustomize.Image) bool { return i.NewName != "" }) {
		return true
	}
	for folder, k := range c.tops {
		if len(k.Transformers) > 0 ||
			k.Kind != kustypes.ComponentKind && slices.ContainsFunc(k.Images, func(i kustypes.Image) bool { return i.NewName != "" }) {
			return true
		}
		for _, p := range k.Patches {
			if changes(p.Patch) || p.Path != "" && changes(c.text(folder, p.Path)) {
				return true
			}
		}
		for _, p := range k.PatchesStrategicMerge { //nolint:staticcheck // deprecated, but kustomize still reads it
			if changes(string(p)) || changes(c.text(folder, string(p))) {
				return true
			}
		}
		for _, p := range k.PatchesJson6902 { //nolint:staticcheck // as above
			if changes(p.Patch) || p.Path != "" && changes(c.text(folder, p.Path)) {
				return true
			}
		}
	}
	return false
}
