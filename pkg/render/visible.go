package render

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/fluxcd/pkg/sourceignore"
	"github.com/fluxcd/pkg/sourceignore/gitignore"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// visible is a file system with the files of a fleet repo that Flux gets. Source-controller passes on only regular files, without the files
// that its own list or the .sourceignore of any folder ignores. If other files were rendered, the result would show objects that Flux
// deletes.
type visible struct {
	all fs.FS

	load    sync.Once
	matcher gitignore.Matcher
	// byName says that the fleet has no patterns of its own. Then a name alone decides whether a file or folder is ignored, in every folder.
	byName   bool
	findings diag.Findings

	names   sync.Map // from a name, and whether it is a folder's, to whether it is ignored
	folders sync.Map // from an ignored folder to whether any file in it is not ignored
}

// ignored tells whether source-controller ignores the path of a file or folder.
func (v *visible) ignored(name string, folder bool) bool {
	v.load.Do(func() {
		own := v.patterns(".", nil)
		v.byName = len(own) == 0
		v.matcher = sourceignore.NewDefaultMatcher(own, nil)
	})
	if !v.byName {
		return v.matcher.Match(strings.Split(name, "/"), folder)
	}
	for {
		first, rest, nested := strings.Cut(name, "/")
		if v.ignoredName(first, folder || nested) {
			return true
		}
		if !nested {
			return false
		}
		name = rest
	}
}

// ignoredName is ignored for a name without its path. A fleet has thousands of files with a few names, so it remembers the answers.
func (v *visible) ignoredName(name string, folder bool) bool {
	type named struct {
		name   string
		folder bool
	}
	if known, ok := v.names.Load(named{name, folder}); ok {
		return known == true
	}
	ignored := v.matcher.Match([]string{name}, folder)
	v.names.Store(named{name, folder}, ignored)
	return ignored
}

// patterns returns the patterns of a folder and of all folders below it, in source-controller's order: the last match counts.
func (v *visible) patterns(dir string, domain []string) []gitignore.Pattern {
	own := v.patternsIn(path.Join(dir, sourceignore.IgnoreFile), domain)
	entries, err := fs.ReadDir(v.all, dir)
	if err != nil {
		return own // a folder that cannot be listed is reported when it is read
	}
	for _, e := range entries {
		if e.IsDir() && e.Name() != ".git" {
			below := slices.Concat(domain, []string{e.Name()})
			own = append(own, v.patterns(path.Join(dir, e.Name()), below)...)
		}
	}
	return own
}

// patternsIn returns the patterns of a file. An unreadable file is a finding: source-controller may be able to read the file, and then
// the files that Flux gets differ from the rendered files.
func (v *visible) patternsIn(name string, domain []string) []gitignore.Pattern {
	content, err := readFile(v.all, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		v.findings = append(v.findings, diag.Finding{
			Severity: diag.SeverityError, Rule: RulePath, File: name, Summary: "the list of files that Flux ignores cannot be read: " + why(err),
			Hint: "make it a regular file",
		})
		return nil
	}
	return sourceignore.ReadPatterns(bytes.NewReader(content), domain)
}

// problems returns the findings about .sourceignore files.
func (v *visible) problems() diag.Findings {
	v.ignored(".", true)
	return v.findings
}

// holds tells whether Flux gets a path: a file that is not ignored, or a folder that is not ignored or contains such a file.
func (v *visible) holds(name string, kind fs.FileMode) bool {
	switch {
	case name == ".":
		return true
	case !kind.IsDir():
		return !v.ignored(name, false)
	case !v.ignored(name, true):
		return true
	case v.byName:
		return false
	}
	if known, ok := v.folders.Load(name); ok {
		return known == true
	}
	found := false
	entries, _ := fs.ReadDir(v.all, name) // a folder that cannot be listed counts as empty
	for _, e := range entries {
		if found = v.holds(path.Join(name, e.Name()), e.Type()); found {
			break
		}
	}
	v.folders.Store(name, found)
	return found
}

// kind returns the type of a file or folder that Flux gets. For other names it returns an error.
func (v *visible) kind(op, name string) (fs.FileMode, error) {
	kind, err := within.Kind(v.all, name)
	switch {
	case err != nil:
		return 0, err
	case !kind.IsRegular() && !kind.IsDir():
		return 0, &fs.PathError{Op: op, Path: name, Err: within.ErrNotRegular}
	case !v.holds(name, kind):
		return 0, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return kind, nil
}

// Open implements fs.FS.
func (v *visible) Open(name string) (fs.File, error) {
	if _, err := v.kind("open", name); err != nil {
		return nil, err
	}
	return v.all.Open(name)
}

// Stat implements fs.StatFS.
func (v *visible) Stat(name string) (fs.FileInfo, error) {
	if _, err := v.kind("stat", name); err != nil {
		return nil, err
	}
	return fs.Stat(v.all, name)
}

// ReadDir implements fs.ReadDirFS. It also lists symbolic links and other special files, so that callers can report that Flux does not get
// them.
func (v *visible) ReadDir(name string) ([]fs.DirEntry, error) {
	if _, err := v.kind("list", name); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(v.all, name)
	seen := make([]fs.DirEntry, 0, len(entries))
	for _, e := range entries {
		if v.holds(path.Join(name, e.Name()), e.Type()) {
			seen = append(seen, e)
		}
	}
	return seen, err
}
