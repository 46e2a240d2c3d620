package gitrepo

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"github.com/fleetctl/fleetctl/pkg/within"
)

// IgnoredIn returns the files and folders in dir that Git ignores and does not track, as paths with slashes relative to dir, sorted. A
// folder stands for all that is in it. No commit gets these files. It returns none if dir is in no repository, if Git ignores dir
// itself, or if nothing can tell.
func IgnoredIn(ctx context.Context, dir string) []string {
	tree, err := WorkTreeOf(dir)
	if err != nil || tree.Common == "" {
		return nil
	}
	r, err := Open(tree.Top)
	if err != nil {
		return nil
	}
	if dir, err = filepath.Abs(dir); err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil
	}
	prefix, err := filepath.Rel(tree.Top, dir)
	if err != nil {
		return nil
	}
	prefix = filepath.ToSlash(prefix)
	names, err := r.ignored(ctx)
	if err != nil {
		return nil
	}
	if prefix == "." {
		return names
	}
	var inside []string
	for _, name := range names {
		if name == prefix || strings.HasPrefix(prefix, name+"/") {
			return nil
		}
		if below, ok := strings.CutPrefix(name, prefix+"/"); ok {
			inside = append(inside, below)
		}
	}
	return inside
}

const (
	maxIgnoreList = 1 << 20
	// maxMatches bounds how often a name is held against a pattern, which a hostile repository could otherwise have done without an end.
	maxMatches = 5_000_000
)

var errTooManyMatches = errors.New("the lists of ignored files are too long")

// ignored returns the ignored files and folders of the working tree that the index does not have, sorted. It starts no program: who only
// reads a repository must not run what it says. So it does not know the lists of the user and of the machine.
func (r *Repo) ignored(ctx context.Context) ([]string, error) {
	index := &lock{gitDir: r.gitDir}
	if err := index.readIndex(); err != nil {
		return nil, err
	}
	w := &ignoring{ctx: ctx.Err, tracked: map[string]bool{}, left: maxMatches}
	for name := range index.entries {
		for ; name != "." && !w.tracked[name]; name = path.Dir(name) {
			w.tracked[name] = true
		}
	}
	var err error
	if w.root, err = os.OpenRoot(r.dir); err != nil {
		return nil, err
	}
	defer w.root.Close()
	own, err := within.Named(filepath.Join(r.commonDir(), "info", "exclude"), maxIgnoreList)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := w.folder(nil, patternsOf(own, nil)); err != nil {
		return nil, err
	}
	slices.Sort(w.found)
	return w.found, nil
}

// ignoring looks for ignored files.
type ignoring struct {
	ctx     func() error
	root    *os.Root
	tracked map[string]bool // files of the index, and their folders
	left    int
	found   []string
}

// folder looks into a folder, given the patterns of the folders above it.
func (w *ignoring) folder(at []string, patterns []gitignore.Pattern) error {
	if err := w.ctx(); err != nil {
		return err
	}
	dir := path.Join(append([]string{"."}, at...)...)
	content, err := within.Read(w.root, path.Join(dir, ".gitignore"), maxIgnoreList)
	if err == nil {
		patterns = slices.Concat(patterns, patternsOf(content, at))
	}
	entries, err := fs.ReadDir(w.root.FS(), dir)
	if err != nil {
		return err
	}
	matcher := gitignore.NewMatcher(patterns)
	for _, e := range entries {
		if w.left -= len(patterns); w.left < 0 {
			return errTooManyMatches
		}
		below := slices.Concat(at, []string{e.Name()})
		name := strings.Join(below, "/")
		switch {
		case e.Name() == ".git":
		case !w.tracked[name] && matcher.Match(below, e.IsDir()):
			w.found = append(w.found, name)
		case e.IsDir() && !within.OtherRepository(w.root, name):
			if err := w.folder(below, patterns); err != nil {
				return err
			}
		}
	}
	return nil
}

// patternsOf returns the patterns of a list in a folder.
func patternsOf(content []byte, at []string) (all []gitignore.Pattern) {
	for line := range strings.Lines(string(content)) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			all = append(all, gitignore.ParsePattern(line, at))
		}
	}
	return all
}
