package validate

import (
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// reading is what a text tells of the objects in it, whether or not it is YAML.
type reading struct {
	words map[string]bool
	// names are the names that it gives to objects, with anywhere in place of what is filled in later.
	names []string
	// any says that it may have any object. opens says that controllers or charts make further objects of it. generates says that it has
	// the word Generator. outside says that a chart from outside of the repo is among it. placed says that it names namespaces.
	any, opens, generates, outside, placed bool
}

func readingOf(text string) *reading {
	r := &reading{words: words(text), any: text == "" || !utf8.ValidString(text) || strings.Contains(text, "ResourceSet")}
	for word := range maps.Clone(r.words) { // the parts of paths and of addresses
		for part := range strings.SplitSeq(word, "/") {
			r.words[part] = true
		}
	}
	for _, found := range versionFields().FindAllStringSubmatch(text, -1) {
		r.opens = r.opens || makesMore(found[1], text)
	}
	r.generates = strings.Contains(text, "Generator")
	r.outside = strings.Contains(text, "HelmRepository") || strings.Contains(text, "OCIRepository")
	r.placed = namespaceFields().MatchString(text)
	for _, found := range nameFields().FindAllStringSubmatch(filledIn().ReplaceAllString(text, anywhere), -1) {
		if strings.Trim(found[1], anywhere+"-.") == "" {
			r.opens = true // any name
			continue
		}
		r.names = append(r.names, found[1])
	}
	slices.Sort(r.names)
	r.names = slices.Compact(r.names)
	return r
}

// together returns what several texts tell.
func together(all []*reading) *reading {
	out := &reading{words: map[string]bool{}}
	for _, r := range all {
		maps.Copy(out.words, r.words)
		out.names = append(out.names, r.names...)
		out.any, out.opens, out.generates = out.any || r.any, out.opens || r.opens, out.generates || r.generates
		out.outside, out.placed = out.outside || r.outside, out.placed || r.placed
	}
	slices.Sort(out.names)
	out.names = slices.Compact(out.names)
	return out
}

// mostReadings is how many readings the gaps of a run may have in all. Gaps beyond that may have any object: each question goes through
// all readings. mostAround is how many words readings.aroundOf keeps.
const mostReadings, mostAround = 200_000, 1_000_000

// readings are the readings of a run. Thousands of Flux Kustomizations may miss the same files, so each is read once.
type readings struct {
	tree *tree
	done map[render.Source]*reading
	// left is what is left of mostReadings, and spare of mostAround.
	left, spare int
	// unused is what the files tell that nothing uses. It is nil until it is wanted.
	unused      *reading
	unusedFiles map[string]bool
	// around are the words of the kustomization.yaml files from which a folder is built.
	around map[string]map[string]bool
	// namespaces are the targetNamespaces of Flux Kustomizations.
	namespaces map[render.Source]string
}

func newReadings(t *tree) *readings {
	return &readings{
		tree: t, done: map[render.Source]*reading{}, left: mostReadings, spare: mostAround, around: map[string]map[string]bool{},
	}
}

// of returns what the document of a file tells that has a line; without a line, the whole file.
func (r *readings) of(f *file, line int) *reading {
	at := render.Source{File: f.path, Line: line}
	if r.done[at] == nil {
		r.done[at] = readingOf(documentOf(f, line))
	}
	return r.done[at]
}

// aroundOf returns the words of the kustomization.yaml files from which a folder is built: its own, those below it, and those of the
// folders that they name. It is nil if there are too many.
func (r *readings) aroundOf(dir string) map[string]bool {
	if out := r.around[dir]; out != nil || r.spare < 0 {
		return out
	}
	out, seen, todo := map[string]bool{}, map[string]bool{}, []string{dir}
	for len(todo) > 0 {
		next := todo[len(todo)-1]
		if todo = todo[:len(todo)-1]; seen[next] {
			continue
		}
		seen[next] = true
		for _, f := range r.tree.below(next) {
			if !layout.IsKustomization(f.path) || seen[f.path] {
				continue
			}
			seen[f.path] = true
			maps.Copy(out, r.of(f, 0).words)
			for word := range r.of(f, 0).words {
				at := path.Join(path.Dir(f.path), word)
				if _, isFolder := r.tree.folders[at]; isFolder && at != "." && !strings.HasPrefix(next+"/", at+"/") {
					todo = append(todo, at)
				}
			}
		}
	}
	if r.spare -= len(out); r.spare < 0 {
		return nil
	}
	r.around[dir] = out
	return out
}
