package change

import (
	"context"
	"io/fs"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// declarations are the files of clusters to render.
type declarations struct {
	// Dirs are the folders with the charts. The first one is the fleet repo.
	Dirs  []string
	Files []declaration
}

// declaration is one file.
type declaration struct {
	// Dir is the index in Dirs of the folder whose charts render the cluster.
	Dir     int
	Path    string
	Content []byte
	// OnlyAfterFailure says that the file matters only if the first file cannot be rendered.
	OnlyAfterFailure bool
}

// declared says what is wrong with a file.
type declared struct{ Findings diag.Findings }

// DeclaredTask renders files of clusters.
var DeclaredTask = confine.New("declared", declaredTask)

func declaredTask(ctx context.Context, q declarations) ([]declared, error) {
	repo, err := fleetrepo.Open(q.Dirs[0])
	if err != nil {
		return nil, err
	}
	renderers := make([]*render.Renderer, len(q.Dirs))
	for i, dir := range q.Dirs {
		var files fs.FS
		if files, err = render.Dir(dir); err != nil {
			return nil, err
		}
		renderers[i] = render.New(files, repo.Fleet, render.Options{Begin: confine.Watch(ctx), Time: confine.TimeLimit(ctx)})
	}
	out := make([]declared, len(q.Files))
	one := func(i int) {
		out[i].Findings = renderers[q.Files[i].Dir].Declared(q.Files[i].Path, q.Files[i].Content)
	}
	if len(out) > 0 {
		one(0)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := 1; i < len(out); i++ {
		if q.Files[i].OnlyAfterFailure && out[0].Findings.Err() == nil {
			continue
		}
		group.Go(func() error {
			if ctx.Err() == nil {
				one(i)
			}
			return ctx.Err()
		})
	}
	return out, group.Wait()
}
