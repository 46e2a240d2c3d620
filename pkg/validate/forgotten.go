package validate

import (
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/layout"
)

// notMeant are names of folders whose manifests are to be read, tried out or copied by people.
var notMeant = []string{"docs", "example", "examples", "sample", "samples", "test", "tests", "testdata", "archive", "_archive"}

// forgotten reports the manifests of a repo with its own layout that lie in the folder of a kustomization.yaml which Flux builds, and that
// no kustomization.yaml names: in a base, or in a folder below the path of a Flux Kustomization. It passes over folders with a
// kustomization.yaml of their own, because those may be variants, and over a resource that is a comment of the kustomization.yaml, because
// that was left out on purpose.
func (u *passedOver) forgotten() {
	nearest, named, comments := map[string]string{}, u.tree.namedByKustomize(), map[string]string{}
	for _, f := range u.tree.files {
		if ext := path.Ext(f.path); ext != ".yaml" && ext != ".yml" || layout.IsKustomization(f.path) {
			continue
		}
		at := u.kustomizationOver(path.Dir(f.path), nearest)
		if at == "" || !u.rendered.Files[at] || u.read[f.path] || named[f.path] || !isManifest(f) || u.renderer.LeavesOut(f.path) {
			continue
		}
		below := strings.TrimPrefix(f.path, path.Dir(at)+"/")
		if isForPeople(below) {
			continue
		}
		if _, known := comments[at]; !known {
			comments[at] = itemsInComments(string(u.tree.byPath[at].content))
		}
		if !mentions(comments[at], below) {
			u.judge(f, u.reason)
		}
	}
}

// kustomizationOver returns the nearest kustomization.yaml in a folder or above it; "" if there is none but at the top of the repo, which
// has files of any kind.
func (u *passedOver) kustomizationOver(dir string, known map[string]string) string {
	if dir == "." {
		return ""
	}
	at, ok := known[dir]
	if !ok {
		for _, name := range layout.KustomizationNames() {
			if u.tree.byPath[path.Join(dir, name)] != nil {
				at = path.Join(dir, name)
			}
		}
		if at == "" {
			at = u.kustomizationOver(path.Dir(dir), known)
		}
		known[dir] = at
	}
	return at
}

// namedByKustomize returns the files and folders that any kustomization.yaml names, whether or not Flux builds it.
func (t *tree) namedByKustomize() map[string]bool {
	named := map[string]bool{}
	for _, f := range t.files {
		if !layout.IsKustomization(f.path) {
			continue
		}
		for _, d := range f.documents {
			eachText(d.object, func(text string) { named[path.Join(path.Dir(f.path), text)] = true })
		}
	}
	return named
}

// isManifest tells whether a file has an object, and not only values with a field called kind.
func isManifest(f *file) bool {
	return slices.ContainsFunc(f.documents, func(d *document) bool {
		version, _ := d.object["apiVersion"].(string)
		return version != "" && kindOf(d) != "" && nameOf(d.object) != ""
	})
}

// isForPeople tells whether the place or the name of a file says that it is an example or a test.
func isForPeople(name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if slices.Contains(notMeant, path.Base(dir)) {
			return true
		}
	}
	base := path.Base(name)
	return strings.Contains(base, ".example.") || strings.Contains(base, ".sample.") || strings.HasPrefix(base, "_")
}

// itemsInComments returns the items of lists in a YAML text that are comments.
func itemsInComments(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if _, comment, ok := strings.Cut(line, "#"); ok && strings.HasPrefix(strings.TrimSpace(comment), "-") {
			out.WriteString(comment)
		}
	}
	return out.String()
}

// mentions tells whether a text names a file or one of the folders that it is in.
func mentions(text, name string) bool {
	for ; name != "."; name = path.Dir(name) {
		if namesPath(text, name) {
			return true
		}
	}
	return false
}
