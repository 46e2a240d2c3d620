package validate

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// isNamed tells whether another file uses this file by its whole path, as valuesFiles of a chart and scripts of pipelines do. Prose and
// comments about a file do not use it.
func (u *passedOver) isNamed(name string) bool {
	if u.texts == nil {
		u.texts = map[string]string{}
		for _, f := range u.tree.files {
			if text := namingText(f); strings.Contains(text, "/") {
				u.texts[f.path] = text
			}
		}
	}
	for from, text := range u.texts {
		if from != name && namesPath(text, name) {
			return true
		}
	}
	return false
}

// namesPath tells whether a text has a path that ends in name: the whole of it, and not a part of a longer name.
func namesPath(text, name string) bool {
	isPart := func(r rune) bool {
		return r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	for rest := text; ; {
		before, after, found := strings.Cut(rest, name)
		if !found {
			return false
		}
		last, _ := utf8.DecodeLastRuneInString(before)
		next, _ := utf8.DecodeRuneInString(strings.TrimPrefix(after, ".")) // which may end a sentence, or begin an ending
		if !isPart(last) && !isPart(next) {
			return true
		}
		rest = after
	}
}

// Prose tells people about files, by its ending or by its name before the first dot.
var (
	proseEndings = []string{".md", ".mdx", ".markdown", ".txt", ".adoc", ".asciidoc", ".rst", ".html"}
	proseNames   = []string{"README", "LICENSE", "LICENCE", "COPYING", "NOTICE", "AUTHORS", "CHANGELOG", "CODEOWNERS", "OWNERS"}
)

// namesOnly tells whether a file names other files without an effect on what they are for: prose, and what tools and Git
// pass over or show otherwise.
func namesOnly(f *file) bool {
	base := path.Base(f.path)
	name, _, _ := strings.Cut(base, ".")
	return strings.HasSuffix(base, "ignore") || base == ".gitattributes" || base == ".gitmodules" ||
		!bytes.HasPrefix(f.content, []byte("#!")) && (slices.Contains(proseEndings, path.Ext(base)) || slices.Contains(proseNames, name))
}

// namingText returns the part of a file in which the name of another file has an effect: the values of YAML, and any other text without
// comments, because there are too many kinds of programs to list. It is "" for prose and the like. A pattern of .sops.yaml names files that
// are to be encrypted, and uses none.
func namingText(f *file) string {
	switch {
	case f.content == nil:
		return ""
	case f.documents == nil && namesOnly(f), path.Base(f.path) == ".sops.yaml":
		return ""
	case f.documents != nil:
		var out strings.Builder
		for _, d := range f.documents {
			addValues(&out, d.node)
		}
		return out.String()
	}
	return withoutComments(string(f.content))
}

// addValues adds the values below a node, each in a line. A value of many lines may be a script.
func addValues(out *strings.Builder, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		out.WriteString(withoutComments(n.Value) + "\n")
	}
	for i, inner := range n.Content {
		if n.Kind != yaml.MappingNode || i%2 == 1 {
			addValues(out, inner)
		}
	}
}

// withoutComments returns a text without what follows a # or a // at the beginning of a word.
func withoutComments(text string) string {
	if !strings.Contains(text, "#") && !strings.Contains(text, "//") {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		for _, mark := range []string{"#", "//"} {
			for at := 0; at < len(line); at++ {
				if strings.HasPrefix(line[at:], mark) && (at == 0 || line[at-1] == ' ' || line[at-1] == '\t') {
					line = line[:at] + "\n"
				}
			}
		}
		out.WriteString(line)
	}
	return out.String()
}
