package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// Limits are the limits of a YAML file of a fleet repo, for yamledit.ParseWithin.
var Limits = yamledit.ReadLimits

// maxBytes is the size of Limits, as a constant.
const maxBytes = 8 << 20

// Screen checks a YAML file before a library that trusts its input reads it. kustomize takes all memory for 400 bytes of aliases of
// aliases, and gigabytes for an object that is some thousand fields deep. Screen reports a file that is too large, before or after its
// aliases are expanded, too deep, not text, or not YAML.
func Screen(file string, src []byte) diag.Findings {
	if len(src) <= maxBytes && yamledit.Tame(src) {
		return nil // the file's parser reports other faults
	}
	if _, err := yamledit.ParseWithin(src, Limits); err != nil {
		return diag.Findings{screenFinding(file, src, err)}
	}
	return nil
}

func screenFinding(file string, src []byte, err error) diag.Finding {
	f := syntaxFinding(RuleScreen, file, src, err)
	if f.Line == 0 {
		f.Line = controlLine(src)
	}
	return f
}

// controlLine is the line of the first control character, since the parser's error names no line; 0, which means the whole file, if there
// is none.
func controlLine(src []byte) int {
	at := bytes.IndexFunc(src, func(r rune) bool { return unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r' })
	if at < 0 {
		return 0
	}
	return 1 + bytes.Count(src[:at], []byte("\n"))
}

// syntaxFinding turns a YAML parser's error into a finding at its place.
func syntaxFinding(rule, file string, src []byte, err error) diag.Finding {
	line, column, text := yamledit.Place(src, err)
	return diag.Finding{Severity: diag.SeverityError, Rule: rule, File: file, Line: line, Column: column, Summary: text, Hint: diag.Hint(err)}
}

// repo reads the files of a fleet repo that Flux sees.
type repo struct{ files fs.FS }

// read returns the content of a file. A file that is not regular or too large is an error.
func (r *repo) read(name string) ([]byte, error) { return readFile(r.files, name) }

func readFile(files fs.FS, name string) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	if info.Size() > maxBytes {
		return nil, fmt.Errorf("%s is larger than %d MiB", name, maxBytes>>20)
	}
	content := make([]byte, info.Size())
	if _, err := io.ReadFull(f, content); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return content, nil
}

func (r *repo) kind(name string) (fs.FileMode, error) {
	if v, ok := r.files.(*visible); ok {
		return v.kind("stat", name)
	}
	return within.Kind(r.files, name)
}

// isFile and isDir tell whether a file or a folder exists at a path. After an error they return false.
func (r *repo) isFile(name string) bool {
	kind, err := r.kind(name)
	return err == nil && kind.IsRegular()
}

func (r *repo) isDir(name string) bool {
	kind, err := r.kind(name)
	return err == nil && kind.IsDir()
}

// missingHint is the hint for a path that leads nowhere. Git keeps no empty folder: an empty folder is a submodule's, or was made by
// hand.
func (r *repo) missingHint(name string) string {
	for dir := name; dir != "." && dir != "/"; dir = path.Dir(dir) {
		if !r.isDir(dir) {
			continue
		}
		if entries, err := fs.ReadDir(r.files, dir); err != nil || len(entries) > 0 {
			break
		}
		return fmt.Sprintf("nothing is in the folder %.100s: fleetctl reads no submodule, and Flux only for a GitRepository with "+
			"recurseSubmodules; copy the files into the repo, or have Flux follow the other repository with a GitRepository of its own", dir)
	}
	return ""
}

// folders lists the folders in a folder. A missing folder has none.
func (r *repo) folders(dir string) []string {
	entries, err := fs.ReadDir(r.files, dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names
}

// inside cleans a path that a file in folder dir names, and tells whether the path stays in the repo.
func inside(dir, name string) (string, bool) {
	if path.IsAbs(name) || strings.Contains(name, `\`) {
		return "", false
	}
	clean := path.Join(dir, name)
	return clean, fs.ValidPath(clean)
}

// why shortens an error of the file system: the finding names the file.
func why(err error) string {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err.Error()
	}
	return err.Error()
}

// manifests lists the resources that kustomize-controller generates for a folder without a kustomization.yaml: every YAML file at any
// depth, and in place of the files of a folder with a kustomization.yaml, this folder.
func (r *repo) manifests(dir string) []string {
	var names []string
	_ = fs.WalkDir(r.files, dir, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // a folder that cannot be listed is reported when it is read
		case name == dir:
		case entry.IsDir():
			if r.kustomizationFile(name) != "" {
				names = append(names, name)
				return fs.SkipDir
			}
		case isYAML(name):
			names = append(names, name)
		}
		return nil
	})
	return names
}
