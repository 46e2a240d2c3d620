package validate

import (
	"bytes"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// gaps returns what Flux applies and this run cannot see. It finds them once, after the fleet is rendered. What is missing in a place may
// be in one of its gaps; everything else is judged as if there were none.
func (r *run) gaps() []*gap {
	if r.unseen != nil {
		return r.unseen
	}
	r.unseen = []*gap{}
	changed, in := r.changesNames(), newReadings(r.tree)
	found := map[string]*gap{} // thousands of clusters may have the same document
	for _, k := range r.rendered.Kustomizations {
		if len(k.Unread)+len(k.Unbuilt) == 0 {
			continue
		}
		what := []string{k.ManagementCluster}
		for _, at := range k.Unread {
			what = append(what, at.File, strconv.Itoa(at.Line))
		}
		what = append(what, k.Unbuilt...)
		id := strings.Join(what, "\x00")
		if found[id] == nil {
			found[id] = r.gapOf(in, k, changed)
			r.unseen = append(r.unseen, found[id])
		}
		found[id].reaches(k.Targets)
		r.place(in, found[id], k)
	}
	r.unseen = append(r.unseen, r.unfollowed(in, changed)...)
	r.unseen = append(r.unseen, r.unrenderedCharts(in)...)
	for _, f := range r.rendered.Findings {
		if path.Base(f.File) == ".sourceignore" { // nobody knows which files Flux gets
			r.unseen = append(r.unseen, &gap{everywhere: true})
		}
	}
	return r.unseen
}

// gapOf is the gap in what a Flux Kustomization applies.
func (r *run) gapOf(in *readings, k *render.Kustomization, changed bool) *gap {
	g := newGap(k.ManagementCluster)
	for _, at := range k.Unread {
		if f := r.tree.byPath[at.File]; f != nil {
			g.read(in, in.of(f, at.Line), func() string { return documentOf(f, at.Line) })
			continue
		}
		g.any = true
	}
	for _, name := range k.Unbuilt {
		if !g.named(in, name) && name == "." {
			g.folder(in, name)
		}
	}
	if len(k.Unbuilt) > 0 {
		if len(g.files) == 0 || r.missesPath(g) {
			g.add(r.unused(in))
			g.unused = in.unusedFiles
		}
	}
	g.understand(in, changed)
	return g
}

// place adds the words that may name the namespaces of what a Flux Kustomization applies: those of the kustomization.yaml files of its
// folder, and its targetNamespace.
func (r *run) place(in *readings, g *gap, k *render.Kustomization) {
	if in.namespaces == nil {
		in.namespaces = map[render.Source]string{}
		for _, o := range r.rendered.Objects {
			if o.IsKustomization() {
				in.namespaces[o.Source] = fieldsOf(&object{Object: o}).Text("spec", "targetNamespace")
			}
		}
	}
	g.around[k.Path] = in.aroundOf(k.Path)
	g.placed = g.placed && g.around[k.Path] != nil
	if namespace := in.namespaces[k.Source]; namespace != "" {
		g.around["\x00"+namespace] = map[string]bool{namespace: true}
	}
}

// missesPath tells whether a file of a gap names a file or folder that does not exist.
func (r *run) missesPath(g *gap) bool {
	return slices.ContainsFunc(r.rendered.Findings, func(f diag.Finding) bool { return f.Rule == render.RulePath && g.files[f.File] })
}

// unused returns what the files of the repo tell that nothing else uses: a path that leads nowhere is meant for some of them.
func (r *run) unused(in *readings) *reading {
	if in.unused != nil {
		return in.unused
	}
	g := newGap("")
	for _, f := range r.tree.files {
		if isYAML(f.path) && !r.rendered.Files[f.path] && !strings.HasPrefix(f.path, ".") && strings.Contains(f.path, "/") {
			g.file(in, f)
		}
	}
	in.unused, in.unusedFiles = together(g.parts), g.files
	in.unused.any = in.unused.any || g.any
	return in.unused
}

// unfollowed returns the gaps of Flux Kustomizations of the repo that could not be read or followed.
func (r *run) unfollowed(in *readings, changed bool) []*gap {
	faulty := map[render.Source]bool{}
	for _, f := range r.rendered.Findings {
		if takesFolder(f, nil) {
			faulty[render.Source{File: f.File, Line: f.Line}] = true
		}
	}
	followed := map[render.Source]bool{}
	for _, k := range r.rendered.Kustomizations {
		followed[k.Source] = true
	}
	var out []*gap
	for _, o := range r.rendered.Objects {
		if !o.IsKustomization() || !faulty[o.Source] || followed[o.Source] {
			continue
		}
		g := newGap(o.ManagementCluster)
		g.reaches(o.Targets)
		text := string(o.JSON)
		g.read(in, readingOf(text), func() string { return text })
		g.understand(in, changed)
		out = append(out, g)
	}
	return out
}

// unrenderedCharts returns the gaps of HelmReleases whose charts in the repo have a file that cannot be read.
func (r *run) unrenderedCharts(in *readings) []*gap {
	var out []*gap
	broken := map[string]bool{}
	for _, f := range r.tree.files {
		for dir := path.Dir(f.path); f.broken && dir != "."; dir = path.Dir(dir) {
			broken[dir] = true
		}
	}
	for _, release := range r.rendered.Releases {
		if release.Rendered || !broken[release.Chart] {
			continue
		}
		g := newGap(release.Object.ManagementCluster)
		g.reaches(release.Object.Targets)
		g.add(readingOf("name: " + release.ReleaseName + "\nnamespace: " + release.ReleaseNamespace + "\n"))
		for _, f := range r.tree.below(path.Join(release.Chart, "templates")) {
			g.add(in.of(f, 0))
		}
		g.understand(in, false)
		g.opens, g.derives = true, true // its templates make names of names
		out = append(out, g)
	}
	return out
}

// lacksIn tells whether a gap may have objects of a namespace.
func (r *run) lacksIn(p place, namespace string) bool {
	return slices.ContainsFunc(r.gaps(), func(g *gap) bool { return g.covers(p) && g.touches(namespace) })
}

// changesNames tells whether kustomize adds something to the names of objects anywhere in the repo.
func (r *run) changesNames() bool {
	return slices.ContainsFunc(r.tree.files, func(f *file) bool {
		return isYAML(f.path) && (bytes.Contains(f.content, []byte("namePrefix")) || bytes.Contains(f.content, []byte("nameSuffix")))
	})
}

// documentOf returns the text of the document of a file that has a line; without a line, the text of the file. It is "" for a file that is
// too large to be read.
func documentOf(f *file, line int) string {
	text, at := string(f.content), 0
	if line == 0 {
		return text
	}
	var document strings.Builder
	for one := range strings.Lines(text) {
		at++
		if strings.HasPrefix(one, "---") && at > 1 {
			if at > line {
				break
			}
			document.Reset()
		}
		document.WriteString(one)
	}
	return document.String()
}

// words returns the words of a text that may be names or paths.
func words(text string) map[string]bool {
	out := map[string]bool{}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return !(r == '-' || r == '_' || r == '.' || r == '/' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}) {
		out[strings.TrimRight(word, ".")] = true
	}
	return out
}

// folder adds all that Flux may build from a folder.
func (g *gap) folder(in *readings, dir string) {
	if in.tree.byPath[path.Join(dir, "Chart.yaml")] != nil || g.folders[dir] {
		return
	}
	g.folders[dir] = true
	for _, f := range in.tree.below(dir) {
		g.file(in, f)
	}
}

// file adds a file that Flux may build from.
func (g *gap) file(in *readings, f *file) {
	if g.files[f.path] {
		return
	}
	g.files[f.path] = true
	if !isYAML(f.path) && path.Ext(f.path) != ".json" {
		return
	}
	g.read(in, in.of(f, 0), func() string { return string(f.content) })
	if !layout.IsKustomization(f.path) {
		return
	}
	for word := range words(string(f.content)) {
		g.named(in, path.Join(path.Dir(f.path), word))
	}
}

// named adds the file or folder at a path, and tells whether there is one.
func (g *gap) named(in *readings, at string) bool {
	_, isFolder := in.tree.folders[at]
	switch {
	case isFolder && at != ".":
		g.folder(in, at)
	case in.tree.byPath[at] != nil:
		g.file(in, in.tree.byPath[at])
	default:
		return false
	}
	return true
}

// read adds what a text tells, and the folders that it names if it has a Flux Kustomization.
func (g *gap) read(in *readings, part *reading, text func() string) {
	if g.add(part); !part.words["kustomize.toolkit.fluxcd.io"] {
		return
	}
	found := false
	for word := range words(text()) {
		if strings.Contains(word, "/") {
			found = g.named(in, path.Clean(strings.TrimLeft(word, "/"))) || found
		}
	}
	g.any = g.any || !found // it applies what is elsewhere
}
