// Package review shows the effect of a change of the fleet repo. It renders the repo, compares the result with another revision, and says
// in words what the change does to machines and clusters.
package review

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/roots"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// RenderOptions say which part of a fleet repo to render.
type RenderOptions struct {
	// Dir is a folder in the fleet repo.
	Dir string
	// Cluster or Environment restricts what is rendered. If both are "", everything is rendered.
	Cluster, Environment string
	// CacheDir keeps what is rendered; "" keeps nothing.
	CacheDir string
}

// Render returns the objects that Flux would apply. Faults of the files are in the result. The error says that the repo cannot be opened,
// or that a name is unknown.
func Render(ctx context.Context, o RenderOptions) (*render.Result, error) {
	dir, _, err := fleetrepo.FindAny(o.Dir)
	if err != nil {
		return nil, err
	}
	if err := gitrepo.CheckSparse(ctx, dir, fleetrepo.Matters); err != nil {
		return nil, err
	}
	o.Dir, o.CacheDir = dir, render.CacheFor(o.CacheDir, dir)
	out, err := RenderTask.Run(ctx, renderQuestion{o, ignoredIn(ctx, dir)}, confine.Needs{Read: []string{dir}, Write: writable(o.CacheDir)})
	if err != nil {
		return nil, err
	}
	return &out.Result, nil
}

// writable returns the folders that a process may write to: the cache, if there is one.
func writable(cacheDir string) []string {
	if cacheDir == "" {
		return nil
	}
	return []string{cacheDir}
}

// ignoredIn returns the files and folders of a fleet repo that no commit gets, so that Flux does not get them either.
func ignoredIn(ctx context.Context, dir string) []string {
	return fleetrepo.NotOwn(gitrepo.IgnoredIn(ctx, dir))
}

// renderQuestion is the input of the process that renders, which has no Git repository. Ignored are files and folders of Dir to leave out.
type renderQuestion struct {
	RenderOptions
	Ignored []string
}

// RenderTask is the part of Render that interprets the files of the fleet repo.
var RenderTask = confine.New("render", renderTask)

func renderTask(ctx context.Context, o renderQuestion) (out rendered, err error) {
	result, err := renderDir(ctx, o)
	if err == nil {
		out.Result = *result
	}
	return out, err
}

func renderDir(ctx context.Context, o renderQuestion) (*render.Result, error) {
	r, _, err := openRenderer(ctx, o.Dir, o.CacheDir, o.Ignored...)
	if err != nil {
		return nil, err
	}
	switch {
	case o.Cluster != "":
		return r.Cluster(ctx, o.Cluster)
	case o.Environment != "":
		return r.Environment(ctx, o.Environment)
	}
	return r.All(ctx)
}

// openRenderer opens a fleet repo to render it. files are the files of the repo, without those to leave out.
func openRenderer(ctx context.Context, dir, cacheDir string, without ...string) (r *render.Renderer, files fs.FS, err error) {
	if files, err = render.Dir(dir, without...); err != nil {
		return nil, nil, err
	}
	fleet, err := fleetOf(dir, files)
	if err != nil {
		return nil, nil, err
	}
	return render.New(files, fleet, render.Options{CacheDir: cacheDir, Begin: confine.Watch(ctx), Time: confine.TimeLimit(ctx)}), files, nil
}

// fleetOf returns the fleet that the fleet.yaml of a folder declares. Without a fleet.yaml it follows from Flux's own objects.
func fleetOf(dir string, files fs.FS) (*v1alpha1.Fleet, error) {
	fleet, err := v1alpha1.Load(filepath.Join(dir, v1alpha1.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return roots.Assume(files, dir)
	}
	if err != nil {
		return nil, err
	}
	return roots.AddTo(fleet, files), nil
}

// listFile names the files that WriteDir has made, so that it touches no others.
const listFile = ".fleetctl-render"

// maxList bounds the listFile, which has a line for each object.
const maxList = 256 << 20

// list returns the content of the listFile.
type list struct {
	FormatVersion string   `json:"formatVersion"`
	Files         []string `json:"files"`
}

// Written is what WriteDir did.
type Written struct {
	Files, Changed, Removed int
}

// WriteDir writes one file for each object into dir: management cluster, environment, cluster, namespace, kind and name make its path, so
// that the path stays the same as long as the object exists. It removes files that it wrote earlier and whose objects are gone, and no
// other files. It writes all files or none. A folder with unknown files is an error.
func WriteDir(dir string, objects []*render.Object) (*Written, error) {
	before, err := listOf(dir)
	if err != nil {
		return nil, err
	}
	files := treeOf(objects)
	out := &Written{Files: len(files)}
	now := list{FormatVersion: "1", Files: make([]string, 0, len(files))}
	for _, f := range files {
		now.Files = append(now.Files, f.Path)
	}
	text, err := json.MarshalIndent(now, "", " ")
	if err != nil {
		return nil, err
	}
	files = append(files, manifest.File{Path: listFile, Content: append(text, '\n')})
	if before == nil {
		out.Changed = out.Files
		return out, writeFresh(dir, files)
	}
	var changes manifest.ChangeSet
	changes.Delete(before.Files...)
	changes.Write(files...)
	done, err := changes.Apply(dir)
	for _, c := range done {
		switch {
		case c.Path == listFile:
		case c.Action == manifest.ActionDelete:
			out.Removed++
		default:
			out.Changed++
		}
	}
	return out, err
}

// listOf reads the listFile of an earlier run in dir. It returns nil if dir does not exist or is empty.
func listOf(dir string) (*list, error) {
	content, err := within.Named(filepath.Join(dir, listFile), maxList)
	if errors.Is(err, fs.ErrNotExist) {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("look at the output folder: %w", err)
		}
		if len(entries) > 0 {
			return nil, diag.Usage("give --output-dir an empty folder, or a folder of an earlier run",
				"%s has files in it that fleetctl did not write", dir)
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at the output folder: %w", err)
	}
	var l list
	if err := json.Unmarshal(content, &l); err != nil {
		return nil, diag.Errorf("empty the folder", "%s in the output folder cannot be read: %w", listFile, err)
	}
	return &l, nil
}

// writeFresh makes the tree beside dir and renames it to dir in one step.
func writeFresh(dir string, files []manifest.File) (err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("make the output folder: %w", err)
	}
	if err := atomicfile.SweepFor(dir); err != nil { // the remains of a run that was killed
		return fmt.Errorf("make the output folder: %w", err)
	}
	tree, err := atomicfile.NewFolder(dir, 0o755)
	if err != nil {
		return fmt.Errorf("make the output folder: %w", err)
	}
	defer tree.Discard()
	for _, f := range files {
		name, err := manifest.SafeJoin(tree.Path, f.Path)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.Content, 0o644); err != nil {
			return err
		}
	}
	return tree.Commit()
}

// treeOf gives each object its file, sorted by path. If several objects would share a file, a digest in the name tells them apart.
func treeOf(objects []*render.Object) []manifest.File {
	byPath := map[string][]*render.Object{}
	for _, o := range objects {
		p := strings.ToLower(pathOf(o)) // some file systems ignore case
		byPath[p] = append(byPath[p], o)
	}
	files := make([]manifest.File, 0, len(objects))
	for p, all := range byPath {
		for _, o := range all {
			name := p
			if len(all) > 1 {
				name += "-" + short(o)
			}
			files = append(files, manifest.File{Path: name + ".yaml", Content: o.YAML()})
		}
	}
	slices.SortFunc(files, func(a, b manifest.File) int { return cmp.Compare(a.Path, b.Path) })
	return files
}

func pathOf(o *render.Object) string {
	parts := []string{o.ManagementCluster}
	if o.Environment != "" {
		parts = append(parts, o.Environment)
	}
	if o.Cluster != "" {
		parts = append(parts, o.Cluster)
	}
	if len(o.Targets) > 0 {
		parts = append(parts, "_workload") // no environment, cluster or namespace can have such a name
	}
	if o.Namespace != "" {
		parts = append(parts, o.Namespace)
	}
	return path.Join(append(parts, clean(o.Kind+"-"+o.Name))...)
}

// clean makes a name valid for all file systems. Names of objects have at most colons that are not.
func clean(name string) string {
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`<>:"/\|?*`, r) || r < ' ' {
			return '_'
		}
		return r
	}, name)
	return name[:min(len(name), 200)]
}
