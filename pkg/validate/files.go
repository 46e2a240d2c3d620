package validate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// maxFile bounds the size of a file that is read. Files of people and generators are smaller. A larger file gets only a finding about its
// size.
const maxFile = 8 << 20

// file is a file of the fleet repo, read once.
type file struct {
	path    string // slash-separated, from the top of the repo
	content []byte // nil if it is not text
	// documents are the documents of a YAML file; nil for other files, and for invalid YAML.
	documents []*document
	// broken says that other YAML parsers fail on the file, or read something else in it.
	broken bool
	// unread says that they do, and that Flux does not read the file, so that it does not count as broken.
	unread bool
	// excluded says that fleet.yaml excludes the file: other files may need its objects, but its findings are not reported. Such a file is
	// never broken. If it cannot be read, it does not count as YAML.
	excluded bool
	ignores  []*ignore
}

// document is one document of a YAML file.
type document struct {
	file  *file
	index int
	node  *yaml.Node
	// start is the document's first line, end its last.
	start, end int
	// object is the content, with the types of JSON; nil if it is not a mapping.
	object map[string]any
}

// tree is the fleet repo on disk.
type tree struct {
	dir     string
	files   []*file // by path
	byPath  map[string]*file
	folders map[string][]string // names in each folder, files and folders
	// partial says that the repo has entries that the tree leaves out.
	partial bool
	// without are files and folders that it leaves out because no commit gets them.
	without []string
	// others are the folders that are repositories of their own, such as submodules. They count as empty.
	others []string
}

// readTree reads all files of the repo concurrently, and reports the faults that show in a single file. It leaves out the files and folders
// in without.
func readTree(ctx context.Context, dir string, exclusion v1alpha1.Exclusion, without ...string) (*tree, diag.Findings, error) {
	t := &tree{dir: dir, without: without, byPath: map[string]*file{}, folders: map[string][]string{}}
	if err := t.walk(ctx); err != nil {
		return nil, nil, fmt.Errorf("list the files of the fleet repo: %w", err)
	}
	charts := map[string]bool{}
	for _, f := range t.files {
		if path.Base(f.path) == "Chart.yaml" {
			charts[path.Dir(f.path)] = true
		}
	}
	findings := make([]diag.Findings, len(t.files))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, f := range t.files {
		_, f.excluded = exclusion.Of(f.path)
		group.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err
			}
			findings[i], err = t.read(f, isYAML(f.path) && !isTemplate(f.path, charts))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, fmt.Errorf("read the fleet repo: %w", err)
	}
	return t, slices.Concat(findings...), nil
}

// walk lists the files. It skips names that begin with a dot, which nothing applies, except for the folders of pipelines, which may hold
// secrets.
func (t *tree) walk(ctx context.Context) error {
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	without := map[string]bool{}
	for _, name := range t.without {
		without[name] = true
	}
	top, err := filepath.EvalSymlinks(t.dir) // WalkDir looks at a link, and not behind it
	if err != nil {
		return err
	}
	return filepath.WalkDir(top, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		relative, err := filepath.Rel(top, name)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		switch {
		case relative == ".":
			return nil
		case without[relative]:
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "node_modules"):
			t.partial = t.partial || relative != ".git" // Flux does not get it
			return filepath.SkipDir
		}
		parent := path.Dir(relative)
		t.folders[parent] = append(t.folders[parent], entry.Name())
		switch {
		case entry.IsDir():
			t.folders[relative] = nil
			if within.OtherRepository(root, relative) {
				t.others = append(t.others, relative)
				return filepath.SkipDir
			}
		case entry.Type().IsRegular():
			f := &file{path: relative}
			t.files, t.byPath[relative] = append(t.files, f), f
		default:
			t.partial = true
		}
		return nil
	})
}

// read reads one file from the disk.
func (t *tree) read(f *file, parse bool) (diag.Findings, error) {
	content, err := within.Start(t.dir, f.path, maxFile+1)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it was removed in the meantime
	}
	if err != nil {
		return nil, err
	}
	return t.take(f, content, parse), nil
}

// take sets the content of a file, and screens the content if it is YAML.
func (t *tree) take(f *file, content []byte, parse bool) diag.Findings {
	if len(content) > maxFile {
		if !parse {
			return nil
		}
		f.broken = !f.excluded
		return diag.Findings{finding(RuleLimit, f.path, 1, 1, fmt.Sprintf("file is larger than %d MiB", maxFile>>20), "")}
	}
	if (!parse || f.excluded) && bytes.IndexByte(content[:min(len(content), 8000)], 0) >= 0 {
		return nil // no text
	}
	f.content = content
	var findings diag.Findings
	f.ignores, findings = parseIgnores(f.path, content, parse)
	if parse {
		documents, problems := screen(f.path, content)
		f.broken = problems.Err() != nil && !f.excluded
		findings = append(findings, problems...)
		for _, d := range documents {
			d.file = f
		}
		f.documents = documents
	}
	return findings
}

func isYAML(name string) bool {
	ext := path.Ext(name)
	return ext == ".yaml" || ext == ".yml" || layout.IsKustomization(name) || path.Base(name) == "fleet.lock"
}

// isTemplate tells whether a file is a template of a Helm chart, which is YAML only after it is rendered.
func isTemplate(name string, charts map[string]bool) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if path.Base(dir) == "templates" && charts[path.Dir(dir)] {
			return true
		}
	}
	return false
}

// isBroken tells whether a file with objects cannot be read.
func (t *tree) isBroken() bool {
	return slices.ContainsFunc(t.files, func(f *file) bool { return f.broken && strings.Contains(f.path, "/") })
}

// unsaid returns the findings without those about an unreadable file, whose fault another finding already reports.
func (t *tree) unsaid(findings diag.Findings) diag.Findings {
	return slices.DeleteFunc(findings, func(f diag.Finding) bool {
		file := t.byPath[f.File]
		return f.Rule == RuleSyntax && file != nil && file.broken
	})
}

func (t *tree) has(name string) bool {
	if t.byPath[name] != nil {
		return true
	}
	_, folder := t.folders[name]
	return folder || name == "."
}

// below returns the files in a folder and in all folders below it.
func (t *tree) below(dir string) []*file {
	if dir == "." {
		return t.files
	}
	prefix := dir + "/"
	from, _ := slices.BinarySearchFunc(t.files, prefix, func(f *file, p string) int { return strings.Compare(walkKey(f.path), walkKey(p)) })
	var out []*file
	for _, f := range t.files[from:] {
		if !strings.HasPrefix(f.path, prefix) {
			break
		}
		out = append(out, f)
	}
	return out
}

// walkKey returns a key that sorts paths as filepath.WalkDir does: the files of a folder come before a name that only begins with the
// folder's name.
func walkKey(name string) string { return strings.ReplaceAll(name, "/", "\x00") }
