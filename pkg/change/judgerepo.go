package change

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/validate"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// ErrInvalid says that `fleetctl validate` would find an error in the fleet repo after a change that it does not find before.
var ErrInvalid = errors.New("the change would make the fleet invalid")

// judgeRepo runs the checks of `fleetctl validate` on the repo with the edit, before anything is written. Errors that
// the repo has only with the edit are the error of judgeRepo. It fetches nothing: CRDs that this machine does not have
// are left out.
func (o Options) judgeRepo(ctx context.Context, repo *fleetrepo.Repo, e *fleetrepo.Edit) error {
	if planned, err := e.Changes.Plan(repo.Dir); err != nil || len(planned) == 0 {
		return err
	}
	dir, remove, err := changedFolder(repo, e)
	if err != nil {
		return err
	}
	defer func() { _ = remove() }() // the folder is temporary
	after, err := o.errorsOf(ctx, dir, repo.Dir)
	after = slices.DeleteFunc(after, func(f diag.Finding) bool { return f.Severity != diag.SeverityError })
	if err != nil || len(after) == 0 {
		return err
	}
	before, err := o.errorsOf(ctx, repo.Dir, "")
	if err != nil {
		return err
	}
	// If the error of a file is gone, the errors that now show were hidden behind it.
	isGone := func(b diag.Finding, after diag.Findings) bool {
		return !slices.ContainsFunc(after, func(f diag.Finding) bool { return sameCause(b, f) })
	}
	broken := slices.DeleteFunc(slices.Clone(after), func(f diag.Finding) bool {
		return slices.ContainsFunc(before, func(b diag.Finding) bool { return sameCause(b, f) || b.File == f.File && isGone(b, after) })
	})
	if broken = toldByCharts(repo, e, broken); len(broken) == 0 {
		return nil
	}
	for i, f := range broken {
		if !within.Exists(repo.Dir, f.File) {
			broken[i].Hint = validate.WithoutComment(f.Hint)
		}
	}
	return &diag.Error{
		Err:  fmt.Errorf("%w, so nothing was written:\n%w", ErrInvalid, broken),
		Hint: "make a different change, or first correct the files that it depends on; `fleetctl validate` lists the present errors",
	}
}

// changedFolder is a temporary copy of the repo that has the edit.
func changedFolder(repo *fleetrepo.Repo, e *fleetrepo.Edit) (dir string, remove func() error, err error) {
	files, err := filesToCopy(repo.Dir, e) // set before the temporary folder is made, which may be in the repo
	if err != nil {
		return "", nil, fmt.Errorf("check the change: %w", err)
	}
	dir, remove, err = atomicfile.TempFolder("", "judge")
	if err != nil {
		return "", nil, diag.Wrap("check the change", err, "free some space, or set TMPDIR")
	}
	if err := changedCopy(repo.Dir, dir, files, e); err != nil {
		return "", nil, errors.Join(fmt.Errorf("check the change: %w", err), remove())
	}
	return dir, remove, nil
}

// look calls Options.Look with the repo before and after the edit.
func (o Options) look(repo *fleetrepo.Repo, e *fleetrepo.Edit) error {
	if o.Look == nil {
		return nil
	}
	dir, remove, err := changedFolder(repo, e)
	if err != nil {
		return err
	}
	defer func() { _ = remove() }() // the folder is temporary
	after, err := fleetrepo.OpenCopy(dir, repo.WorkTree)
	if err != nil {
		return err
	}
	return o.Look(repo, after)
}

// sameCause tells whether two errors have the same cause. They do if they are about the same file, or if the same object is missing, in
// any file: one more object in a missing namespace makes nothing worse.
func sameCause(a, b diag.Finding) bool {
	return a.Rule == b.Rule && (a.File == b.File || strings.HasPrefix(a.Rule, "missing-")) && saysOf(a) == saysOf(b)
}

// saysOf returns the text of a finding without the name of its object and without the source of the object.
func saysOf(f diag.Finding) string {
	says, _, _ := strings.Cut(f.Summary, " (made by ")
	if _, after, ok := strings.Cut(says, ": "); ok {
		return after
	}
	return says
}

// errorsOf returns the errors that validate finds in a fleet repo, and the warning that Flux applies nothing of it. For a new fleet this is
// only a warning, and the first object makes nothing worse. copyOf is the repo of which dir is an edited copy, if it is one.
func (o Options) errorsOf(ctx context.Context, dir, copyOf string) (diag.Findings, error) {
	options := validate.Options{Dir: dir, CopyOf: copyOf, Offline: true}
	if _, err := os.Stat(o.CacheDir); err == nil { // a look creates no copy
		options.CacheDir = o.CacheDir
	}
	result, err := validate.Run(ctx, options)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(result.Findings, func(f diag.Finding) bool {
		return f.Severity != diag.SeverityError && f.Rule != validate.RuleNothing
	}), nil
}

// toldByCharts removes findings about clusters whose charts the edit changes. judgeCharts has already reported them, and a team may
// change their values before the commit.
func toldByCharts(repo *fleetrepo.Repo, e *fleetrepo.Edit, findings diag.Findings) diag.Findings {
	flavours := changedFlavours(e)
	if len(flavours) == 0 || len(findings) == 0 {
		return findings
	}
	clusters, _, err := repo.Clusters()
	if err != nil {
		return findings
	}
	return slices.DeleteFunc(findings, func(f diag.Finding) bool {
		return slices.ContainsFunc(clusters, func(c fleetrepo.Cluster) bool { return c.File == f.File && slices.Contains(flavours, c.Flavour) })
	})
}

// changedFlavours returns the flavours whose charts an edit changes.
func changedFlavours(e *fleetrepo.Edit) (flavours []string) {
	for _, check := range e.Checks {
		if charts, ok := check.(fleetrepo.KeepsClusters); ok {
			flavours = append(flavours, charts.Flavours...)
		}
	}
	return flavours
}

// entry is a file, folder or link of a repo.
type entry struct {
	path string
	mode fs.FileMode
}

// filesToCopy returns all files of a repo that Flux gets, except the files that the edit changes.
func filesToCopy(dir string, e *fleetrepo.Edit) ([]entry, error) {
	changed := e.Changes.Paths()
	var all []entry
	full := map[string]bool{} // folders are made for their content: a folder that the edit empties is left out
	err := within.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && name != ".":
			return nil // the file was deleted meanwhile
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
			return fs.SkipDir
		}
		full[path.Dir(name)] = true
		if name != "." && !slices.Contains(changed, name) {
			all = append(all, entry{name, d.Type()})
		}
		return nil
	})
	return slices.DeleteFunc(all, func(e entry) bool { return e.mode.IsDir() && full[e.path] }), err
}

// changedCopy makes a copy of the repo with an edit in a folder. Files that the edit does not change are links, if the disk allows that.
func changedCopy(from, to string, all []entry, e *fleetrepo.Edit) error {
	for _, file := range all {
		if err := copyEntry(from, to, file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	_, err := e.Changes.Apply(to)
	return err
}

func copyEntry(from, to string, e entry) error {
	source, target := filepath.Join(from, filepath.FromSlash(e.path)), filepath.Join(to, filepath.FromSlash(e.path))
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	switch {
	case e.mode.IsDir():
		return os.Mkdir(target, 0o755)
	case e.mode&fs.ModeSymlink != 0:
		leads, err := os.Readlink(source)
		if err != nil {
			return err
		}
		return os.Symlink(leads, target)
	case !e.mode.IsRegular():
		return nil
	case os.Link(source, target) == nil:
		return nil
	}
	content, err := within.Start(from, e.path, maxJudged)
	if err != nil {
		return err
	}
	return os.WriteFile(target, content, 0o600)
}

// maxJudged is a little more than the largest file that validate reads. validate refuses a larger file by its size
// alone.
const maxJudged = 8<<20 + 2
