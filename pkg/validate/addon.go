package validate

import (
	"context"
	"embed"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// Addon checks a folder of objects that a new cluster gets first, such as a network, before the folder is in the repo. It returns the
// findings of Run for the folder, and a finding for each object that no controller would act on that early. files is the whole content of
// the folder, dir its path in the repo. Addon knows the kinds of Kubernetes and the kinds whose CRDs are among the files. It warns that
// objects of other kinds are not checked. It fails only if ctx ends.
func Addon(ctx context.Context, dir string, files []manifest.File) (diag.Findings, error) {
	return AddonTask.Run(ctx, addon{dir, files}, confine.Needs{})
}

// addon is the request to the confined process that checks a folder.
type addon struct {
	Dir   string
	Files []manifest.File
}

// AddonTask does the work of Addon in a confined process.
var AddonTask = confine.New("addon", addonTask)

func addonTask(ctx context.Context, a addon) (diag.Findings, error) {
	dir, files := a.Dir, a.Files
	t, findings := treeOf(files)
	findings = append(findings, checkSecrets(t)...)
	r := &run{tree: t, rendered: &render.Result{}}
	var nothing embed.FS // all files are in the tree
	r.rendered.Objects, r.rendered.Findings = render.New(t.filesOver(nothing), &v1alpha1.Fleet{},
		render.Options{Begin: confine.Watch(ctx), Time: confine.TimeLimit(ctx)}).Folder(ctx, dir)
	findings = append(findings, r.renderFindings(&placement{})...)
	s := newSchemas(nil)
	s.addMade(t, r.rendered.Objects)
	s.addTree(t)
	objects := r.objects()
	if err := r.judge(ctx, s, kindsIn(objects), objects); err != nil {
		return nil, err
	}
	findings = append(findings, s.findings...)
	for _, o := range objects {
		findings = append(append(findings, o.findings...), tooEarly(o)...)
	}
	findings = append(findings, unknownKinds(s, objects)...)
	left, _ := t.silence(tidy(findings))
	return tidy(left), ctx.Err()
}

// tooEarly reports an object of Flux, which comes to a cluster after its add-ons.
func tooEarly(o *object) diag.Findings {
	if !strings.HasSuffix(groupOf(o), ".toolkit.fluxcd.io") {
		return nil
	}
	f := o.at("kind", RuleUnknownKind, "the cluster has no Flux yet, because Flux comes after the add-ons: nothing would apply this object",
		"put the objects themselves here, such as those that `helm template` prints")
	f.Severity, o.unknown = diag.SeverityError, false
	return diag.Findings{f}
}

// treeOf is a repo with only these files.
func treeOf(files []manifest.File) (*tree, diag.Findings) {
	t := &tree{byPath: map[string]*file{}, folders: map[string][]string{}}
	names := map[string]map[string]bool{} // in each folder
	var findings diag.Findings
	for _, given := range files {
		f := &file{path: given.Path}
		t.files, t.byPath[f.path] = append(t.files, f), f
		findings = append(findings, t.take(f, given.Content, isYAML(f.path))...)
		for name := f.path; name != "."; name = path.Dir(name) {
			parent := path.Dir(name)
			if names[parent] == nil {
				names[parent] = map[string]bool{}
			}
			names[parent][path.Base(name)] = true
		}
	}
	for dir, inside := range names {
		t.folders[dir] = slices.Sorted(maps.Keys(inside))
	}
	slices.SortFunc(t.files, func(a, b *file) int { return strings.Compare(walkKey(a.path), walkKey(b.path)) })
	return t, findings
}
