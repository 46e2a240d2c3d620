package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// pagesOf are the pages that people read, by their paths below root: all of docs, README and CONTRIBUTING, and each README below examples,
// templates and scripts.
func pagesOf(t *testing.T, root string) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, top := range []string{"README.md", "CONTRIBUTING.md", "docs", "examples", "templates", "scripts"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" {
				return err
			}
			content, err := os.ReadFile(path)
			name, _ := filepath.Rel(root, path)
			pages[filepath.ToSlash(name)] = string(content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(pages) < 60 {
		t.Fatalf("found only %d pages", len(pages))
	}
	return pages
}

var (
	fencedBlock = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	codeSpan    = regexp.MustCompile("`[^`\n]*`")
	pageLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	pageHeading = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	linkText    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	docsInCode  = regexp.MustCompile(`(?:^|[^\w/.])(docs/[\w/.-]+\.md(?:#[\w-]+)?)`)
)

// TestLinksInDocs follows each relative link of a page, and each path of a page that an error, a hint or a help text names: the file is
// there, and has the heading.
func TestLinksInDocs(t *testing.T) {
	root := filepath.Join("..", "..")
	pages := pagesOf(t, root)
	headings := map[string][]string{}
	for name, content := range pages {
		headings[name] = anchors(content)
	}
	follow := func(from, link, base string) {
		path, anchor, _ := strings.Cut(link, "#")
		target := base
		if path != "" {
			target = filepath.ToSlash(filepath.Join(filepath.Dir(base), filepath.FromSlash(path)))
		}
		if _, err := os.Stat(filepath.Join(root, target)); err != nil {
			t.Errorf("%s links to %s: there is no such file", from, link)
			return
		}
		if anchor != "" && strings.HasSuffix(target, ".md") && !slices.Contains(headings[target], anchor) {
			t.Errorf("%s links to %s: the page has no such heading", from, link)
		}
	}
	followed := 0
	for name, content := range pages {
		prose := codeSpan.ReplaceAllString(fencedBlock.ReplaceAllString(content, ""), "")
		for _, found := range pageLink.FindAllStringSubmatch(prose, -1) {
			if strings.Contains(found[1], "://") || strings.HasPrefix(found[1], "mailto:") {
				continue
			}
			followed++
			follow(name, found[1], name)
		}
	}
	if followed < 200 {
		t.Errorf("found only %d links", followed)
	}
	for _, top := range []string{"cmd", "pkg", "templates"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
				return err
			}
			content, err := os.ReadFile(path)
			if filepath.Ext(path) == ".go" {
				for _, found := range docsInCode.FindAllStringSubmatch(string(content), -1) {
					follow(path, found[1], ".")
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// anchors are the names under which a forge shows the headings of a page.
func anchors(page string) []string {
	var all []string
	for _, found := range pageHeading.FindAllStringSubmatch(fencedBlock.ReplaceAllString(page, ""), -1) {
		text := strings.ToLower(linkText.ReplaceAllString(found[1], "$1"))
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return r
			}
			return -1
		}, text)
		all = append(all, anchor)
	}
	return all
}

// TestEveryPageCanBeFound holds docs/README.md, the index, to the pages that there are.
func TestEveryPageCanBeFound(t *testing.T) {
	root := filepath.Join("..", "..")
	pages := pagesOf(t, root)
	index := pages["docs/README.md"]
	for name := range pages {
		below, isDoc := strings.CutPrefix(name, "docs/")
		if !isDoc || below == "README.md" || strings.HasPrefix(below, "reference/fleetctl_") {
			continue
		}
		if !strings.Contains(index, "]("+below+")") {
			t.Errorf("docs/README.md has no link to %s", below)
		}
	}
}

// lastHeading is how each task ends.
const lastHeading = "See that it worked"

// TestTasksBeginAndEnd holds every task page to one form: it begins with what it is for, and ends with how to see that it worked.
func TestTasksBeginAndEnd(t *testing.T) {
	checked := 0
	for name, content := range pagesOf(t, filepath.Join("..", "..")) {
		if !strings.HasPrefix(name, "docs/tasks/") {
			continue
		}
		checked++
		title, rest, _ := strings.Cut(content, "\n\n")
		purpose, _, _ := strings.Cut(rest, "\n\n")
		if !strings.HasPrefix(title, "# ") || len(purpose) < 40 || !unicode.IsLetter(rune(purpose[0])) || !strings.Contains(purpose, ".") {
			t.Errorf("%s does not begin with a title and a paragraph that says what it is for, but with %q", name, title+" / "+purpose)
		}
		last := strings.LastIndex(content, "\n## ")
		if last < 0 || !strings.HasPrefix(content[last:], "\n## "+lastHeading+"\n") {
			t.Errorf("%s does not end with a section %q", name, lastHeading)
			continue
		}
		if ending := content[last:]; !strings.Contains(ending, "```") ||
			!strings.Contains(ending, "fleetctl ") && !strings.Contains(ending, "kubectl ") && !strings.Contains(ending, "tar ") {
			t.Errorf("%s: its section %q has no command", name, lastHeading)
		}
	}
	if checked < 30 {
		t.Errorf("found only %d tasks", checked)
	}
}

var (
	pathInPage     = regexp.MustCompile("`((?:cmd|docs|examples|pkg|scripts|templates)/[\\w/.-]*\\w)`")
	functionInPage = regexp.MustCompile("`(\\w+)` (?:in|of) `((?:cmd|pkg)/[\\w/.-]+\\.go)`")
	testInPage     = regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`")
	testInCode     = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
	targetsInPage  = regexp.MustCompile("`make ([^`]+)`")
	targetsInMake  = regexp.MustCompile(`(?m)^([a-z0-9][a-z0-9 -]*):(?:[^=]|$)`)
)

// TestContributingNamesWhatIsThere holds the files, folders and functions of CONTRIBUTING to the code.
func TestContributingNamesWhatIsThere(t *testing.T) {
	root := filepath.Join("..", "..")
	page := pagesOf(t, root)["CONTRIBUTING.md"]
	paths, functions := pathInPage.FindAllStringSubmatch(page, -1), functionInPage.FindAllStringSubmatch(page, -1)
	if len(paths) < 60 || len(functions) < 15 {
		t.Fatalf("found %d paths and %d functions", len(paths), len(functions))
	}
	for _, found := range paths {
		if _, err := os.Stat(filepath.Join(root, found[1])); err != nil {
			t.Errorf("CONTRIBUTING names %s: %v", found[1], err)
		}
	}
	for _, found := range functions {
		content, err := os.ReadFile(filepath.Join(root, found[2]))
		if err != nil {
			continue // told above
		}
		if !regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|var |const |\t)` + found[1] + `\b`).Match(content) {
			t.Errorf("CONTRIBUTING names %s in %s: it is not there", found[1], found[2])
		}
	}
}

// TestContributingNamesTestsAndTargets holds the tests and the make targets that CONTRIBUTING names to the code and the Makefile.
func TestContributingNamesTestsAndTargets(t *testing.T) {
	root := filepath.Join("..", "..")
	page := pagesOf(t, root)["CONTRIBUTING.md"]
	there := map[string]bool{}
	for _, top := range []string{"cmd", "pkg", "templates", "examples"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			for _, found := range testInCode.FindAllStringSubmatch(string(content), -1) {
				there[found[1]] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range targetsInMake.FindAllStringSubmatch(string(makefile), -1) {
		for target := range strings.FieldsSeq(found[1]) {
			there["make "+target] = true
		}
	}
	var named []string
	for _, found := range testInPage.FindAllStringSubmatch(page, -1) {
		named = append(named, found[1])
	}
	for _, found := range targetsInPage.FindAllStringSubmatch(page, -1) {
		for target := range strings.FieldsSeq(found[1]) {
			named = append(named, "make "+target)
		}
	}
	if len(named) < 30 {
		t.Errorf("found only %q", named)
	}
	for _, name := range named {
		if !there[name] && !strings.Contains(name, "=") {
			t.Errorf("CONTRIBUTING names %s: it is not there", name)
		}
	}
}
