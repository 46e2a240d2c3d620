package following

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// wantedQuestion asks which objects Flux would apply to a management cluster.
type wantedQuestion struct {
	// Dir has the files of the fleet repo. Fleet is the fleet.yaml as init reads it.
	Dir, ManagementCluster string
	Fleet                  *v1alpha1.Fleet
}

// wantedAnswer lists the objects that Flux would apply.
type wantedAnswer struct {
	Objects []wantedObject
	// Followed are the Kustomizations, NAMESPACE/NAME, that apply the fleet's own branch to the management cluster.
	Followed []string
	// Elsewhere are the Kustomizations whose objects the fleet's own branch does not tell, each with the reason.
	Elsewhere []string
	// Broken is a finding because of which the answer lacks objects or their content. It is "" if there is none.
	Broken string
}

// wantedObject is an object of the answer.
type wantedObject struct {
	APIVersion, Kind, Namespace, Name string
	// By is the Kustomization, NAMESPACE/NAME, that applies the object from the fleet's own branch. Release is the HelmRelease whose chart
	// of that branch makes the object. Content is the applied object. All three are empty for other objects.
	By      string          `json:",omitempty"`
	Release string          `json:",omitempty"`
	Content json.RawMessage `json:",omitempty"`
}

// WantedTask renders what a management cluster's Flux applies to it.
var WantedTask = confine.New("wanted", wantedTask)

func wantedTask(ctx context.Context, q wantedQuestion) (*wantedAnswer, error) {
	files, err := render.Dir(q.Dir)
	if err != nil {
		return nil, err
	}
	result, err := render.New(files, q.Fleet, render.Options{Begin: confine.Watch(ctx), Time: confine.TimeLimit(ctx)}).All(ctx)
	if err != nil {
		return nil, err
	}
	out, elsewhere := &wantedAnswer{}, map[string]bool{}
	for _, o := range result.Objects {
		if o.ManagementCluster != q.ManagementCluster || len(o.Targets) > 0 || o.Suspended {
			continue
		}
		wanted := wantedObject{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
		if by := o.Owner.Namespace + "/" + o.Owner.Name; o.GitSource != flux.Name {
			elsewhere[o.Owner.String()+", which follows "+o.GitSource] = true
		} else if o.Owner.Kind == render.KindKustomization {
			wanted.By, wanted.Content = by, o.JSON
		} else {
			wanted.Release, wanted.Content = by, o.JSON
		}
		out.Objects = append(out.Objects, wanted)
	}
	for _, r := range result.Releases {
		if o := r.Object; !r.Rendered && o.ManagementCluster == q.ManagementCluster && len(o.Targets) == 0 && !o.Suspended {
			elsewhere[r.String()+", whose chart is not in the fleet repo"] = true
		}
	}
	out.Elsewhere = slices.Sorted(maps.Keys(elsewhere))
	for _, k := range result.Kustomizations {
		if k.ManagementCluster == q.ManagementCluster && len(k.Targets) == 0 && !k.Suspended && k.GitSource == flux.Name {
			out.Followed = append(out.Followed, k.Namespace+"/"+k.Name)
		}
	}
	i := slices.IndexFunc(result.Findings, func(f diag.Finding) bool {
		return f.Severity == diag.SeverityError ||
			f.Rule == render.RuleSubstitute
	})
	if i >= 0 {
		out.Broken = result.Findings[i].String()
	}
	return out, nil
}

// wantedObjects returns the objects of the commit that Flux is to apply, or without a commit the objects of the folder.
func wantedObjects(ctx context.Context, s *session.Session, have View) (*wantedAnswer, error) {
	dir := cmp.Or(have.dir, s.Opts.Dir)
	if have.repo != nil && have.revision != "" {
		checkout, remove, err := atomicfile.TempFolder("", "wanted")
		if err != nil {
			return nil, err
		}
		defer func() { _ = remove() }() // temporary files
		if err := writeCommit(have.repo, have.revision, checkout); err != nil {
			return nil, fmt.Errorf("read commit %s: %w", have.revision, err)
		}
		dir = checkout
	}
	return WantedTask.Run(ctx, wantedQuestion{Dir: dir, ManagementCluster: s.DeclaredAs(), Fleet: s.Fleet}, confine.Needs{Read: []string{dir}})
}

// writeCommit writes the regular files of a commit below dir, and nowhere else. It leaves out files that are too large to be rendered.
func writeCommit(repo *gitrepo.Repo, commit, dir string) error {
	files, err := repo.Files(commit)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // it was only gone through
	return fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil || info.Size() > int64(render.Limits.Bytes) {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
			return err
		}
		return root.WriteFile(name, content, 0o600)
	})
}
