package conversion

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/gitrepo/internal/pattern"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// The special values that an attribute may have.
const (
	isSet       = "set"
	unset       = "unset"
	unspecified = ""
)

// Attributes are the attributes of a file that change how git converts its content.
type Attributes struct{ text, crlf, eol, filter, encoding, ident string }

// attributeNames are the names of the Attributes, in the order of the fields.
var attributeNames = []string{"text", "crlf", "eol", "filter", "working-tree-encoding", "ident"}

// field returns the field for an attribute; nil for an attribute that changes no conversion.
func (a *Attributes) field(name string) *string {
	for i, field := range []*string{&a.text, &a.crlf, &a.eol, &a.filter, &a.encoding, &a.ident} {
		if attributeNames[i] == name {
			return field
		}
	}
	return nil
}

// File is the name of the file that sets the attributes of the files in its folder and below.
const File = ".gitattributes"

// reader finds the attributes of files. It asks git, or, if git is not installed, reads the files that git would read.
type reader struct {
	place
	found    map[string]Attributes
	global   []byte // the attributes outside of the working tree
	anywhere bool   // there are attributes outside of the working tree
	macros   map[string][]string
	folders  map[string][]byte // the .gitattributes of each folder; nil if a folder has none
}

func newReader(p place) (*reader, error) {
	a := &reader{place: p, found: map[string]Attributes{}, folders: map[string][]byte{}}
	a.macros = map[string][]string{"binary": {"-diff", "-merge", "-text"}}
	for _, name := range a.Global {
		content, err := readIfThere(name)
		if err != nil {
			return nil, err
		}
		a.global = append(append(a.global, content...), '\n')
	}
	a.anywhere = len(bytes.TrimSpace(a.global)) > 0
	info, err := readIfThere(a.Info)
	a.anywhere = a.anywhere || len(info) > 0
	return a, err
}

func readIfThere(name string) ([]byte, error) {
	content, err := within.Named(name, 100<<20)
	if errors.Is(err, fs.ErrNotExist) || name == "" {
		return nil, nil
	}
	return content, err
}

// folder returns the .gitattributes of a folder. As git, it ignores a symbolic link.
func (a *reader) folder(dir string) ([]byte, error) {
	if content, ok := a.folders[dir]; ok {
		return content, nil
	}
	const most = 100 << 20 // git ignores larger ones
	name := filepath.Join(filepath.FromSlash(dir), File)
	var content []byte
	if info, err := a.Root.Lstat(name); err == nil && info.Mode().IsRegular() && info.Size() < most {
		if content, err = within.Read(a.Root, filepath.ToSlash(name), most); err != nil { // it may grow meanwhile
			return nil, err
		}
	}
	a.folders[dir] = content
	return content, nil
}

// foldersOf returns the folders that contain a path, the top first.
func foldersOf(p string) []string {
	all := []string{"."}
	for i, c := range p {
		if c == '/' {
			all = append(all, p[:i])
		}
	}
	return all
}

// Unmarked tells whether there are no attributes for any file at p: neither outside of the working tree, nor in the folders of the file.
func (a *reader) Unmarked(p string) (bool, error) {
	if a.anywhere {
		return false, nil
	}
	for _, dir := range foldersOf(p) {
		if content, err := a.folder(dir); err != nil || len(content) > 0 {
			return false, err
		}
	}
	return true, nil
}

// Look finds the attributes of files. It asks git for all of them in one call.
func (a *reader) Look(ctx context.Context, paths ...string) error {
	var ask []string
	for _, p := range paths {
		if _, known := a.found[p]; known {
			continue
		}
		plain, err := a.Unmarked(p)
		switch {
		case err != nil:
			return fmt.Errorf("read the attributes of %s: %w", p, err)
		case plain:
			a.found[p] = Attributes{}
		case a.Git != nil:
			ask = append(ask, p)
		default:
			if a.found[p], err = a.read(p); err != nil {
				return fmt.Errorf("read the attributes of %s: %w", p, err)
			}
		}
	}
	if len(ask) == 0 {
		return nil
	}
	input := strings.Join(ask, "\x00") + "\x00"
	out, err := a.Git(ctx, []byte(input), append([]string{"check-attr", "--stdin", "-z"}, attributeNames...)...)
	if err != nil {
		return a.Untrusted(err)
	}
	answers := strings.Split(string(out), "\x00")
	for i := 0; i+2 < len(answers); i += 3 {
		at := a.found[answers[i]]
		value := answers[i+2]
		if value == "unspecified" {
			value = unspecified
		}
		if field := at.field(answers[i+1]); field != nil {
			*field = value
		}
		a.found[answers[i]] = at
	}
	return nil
}

// read finds the attributes of a file as git does.
func (a *reader) read(p string) (Attributes, error) {
	values := map[string]string{}
	a.apply(values, a.global, ".", p, true)
	for _, dir := range foldersOf(p) {
		content, err := a.folder(dir)
		if err != nil {
			return Attributes{}, err
		}
		a.apply(values, content, dir, p, dir == ".")
	}
	info, err := readIfThere(a.Info)
	if err != nil {
		return Attributes{}, err
	}
	a.apply(values, info, ".", p, true)
	var found Attributes
	for name, value := range values {
		if field := found.field(name); field != nil {
			*field = value
		}
	}
	return found, nil
}

// apply sets the values that the lines of an attributes file in the folder dir give the file at p.
func (a *reader) apply(values map[string]string, content []byte, dir, p string, macros bool) {
	for line := range strings.Lines(strings.TrimPrefix(string(content), "\ufeff")) {
		pattern, words := attributeLine(line)
		if name, ok := strings.CutPrefix(pattern, "[attr]"); ok {
			if macros {
				a.macros[name] = words
			}
			continue
		}
		if pattern == "" || strings.HasPrefix(pattern, "!") || !attributePatternMatches(pattern, dir, p) {
			continue
		}
		for _, word := range words {
			a.set(values, word)
		}
	}
}

func (a *reader) set(values map[string]string, word string) {
	name, value, hasValue := strings.Cut(word, "=")
	switch {
	case hasValue:
		values[name] = value
	case strings.HasPrefix(word, "-"):
		values[word[1:]] = unset
	case strings.HasPrefix(word, "!"):
		values[word[1:]] = unspecified
	default:
		values[word] = isSet
		for _, inner := range a.macros[word] {
			a.set(values, inner)
		}
	}
}

// attributeLine splits a line into its pattern, which may be quoted, and its words.
func attributeLine(line string) (pattern string, words []string) {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "#") || line == "" {
		return "", nil
	}
	if line[0] == '"' {
		var b strings.Builder
		for i := 1; i < len(line); i++ {
			switch {
			case line[i] == '"':
				return b.String(), strings.Fields(line[i+1:])
			case line[i] == '\\' && i+1 < len(line):
				i++
			}
			b.WriteByte(line[i])
		}
	}
	words = strings.Fields(line)
	return words[0], words[1:]
}

// attributePatternMatches tells whether a pattern in the .gitattributes of a folder matches a path. A pattern without a slash matches names
// in any folder below.
func attributePatternMatches(written, dir, p string) bool {
	inside := p
	if dir != "." {
		inside = strings.TrimPrefix(p, dir+"/")
	}
	if strings.HasSuffix(written, "/") {
		return false // folders have no attributes
	}
	if !strings.Contains(written, "/") {
		return pattern.Match(written, path.Base(inside), false)
	}
	return pattern.Match(strings.TrimPrefix(written, "/"), inside, false)
}
