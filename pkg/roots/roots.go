package roots

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/layout"
)

// Root is the folder that a cluster's Flux applies first. It names all other folders that Flux applies.
type Root struct {
	// Name that the cluster would get in fleet.yaml.
	Name string `json:"name"`
	// Path of the folder.
	Path string `json:"path"`
	// File and Line of the object that makes the folder a root: a Flux Kustomization that applies its own folder, or a FluxInstance.
	File string `json:"file"`
	Line int    `json:"line"`
	// URL and Branch of the Git repository that it follows; "" where the repo does not say.
	URL    string `json:"url,omitempty"`
	Branch string `json:"branch,omitempty"`
	// Flux is the version of the components in the same folder; "" if Flux is installed in another way.
	Flux string `json:"flux,omitempty"`
}

// In finds the root folders of the clusters' Flux. FluxInstances name root folders, also in values of Flux Operator's chart, and so do Flux
// Kustomizations that apply their own folder. If the repo has neither, the roots are the folders with Flux Kustomizations that no other
// Flux Kustomization applies. Unreadable files name no roots.
func In(files fs.FS) []Root {
	objects, versions := fluxObjects(files)
	b := &beginnings{
		files: files, objects: objects,
		sources: map[[3]string]fluxObject{}, byPath: map[string]Root{}, reached: map[string]*reach{},
	}
	for _, o := range objects {
		if o.kind == "GitRepository" {
			b.sources[[3]string{o.kind, o.namespace, o.name}] = o
		}
	}
	for _, o := range objects {
		switch {
		case o.kind == "FluxInstance":
			b.add(o, b.inArtifact(o.path))
		case b.begins(o):
			b.add(o, o.path)
		}
	}
	if len(b.byPath) == 0 {
		b.addUnapplied()
	}
	return b.named(versions)
}

// beginnings are the root folders found in a repo.
type beginnings struct {
	files   fs.FS
	objects []fluxObject
	sources map[[3]string]fluxObject
	byPath  map[string]Root
	// reached has the files that Flux reads for each path of a Kustomization.
	reached map[string]*reach
}

func (b *beginnings) add(o fluxObject, dir string) {
	if _, there := b.byPath[dir]; there || dir == "" || !isFolder(b.files, dir) {
		return
	}
	var source fluxObject // a path that is not in the repo belongs to another repo's source
	if isFolder(b.files, o.path) {
		source = b.sources[[3]string{o.sourceKind, cmp.Or(o.sourceNamespace, o.namespace), o.sourceName}]
	}
	b.byPath[dir] = Root{Path: dir, File: o.file, Line: o.line, URL: cmp.Or(o.url, source.url), Branch: cmp.Or(o.branch, source.branch)}
}

// begins tells whether a cluster's Flux begins with a Kustomization, because the Kustomization applies itself. A Kustomization that only
// stands in the folder that it applies, beside a kustomization.yaml that does not name it, is applied by another one.
func (b *beginnings) begins(o fluxObject) bool {
	switch {
	case !o.appliesItself():
		return false
	case o.isBootstrap():
		return o.path != "." || !slices.ContainsFunc(b.objects, o.isOfAnother)
	case o.pathless, o.path == "." && (o.sourceKind != "GitRepository" || slices.ContainsFunc(b.objects, o.isOfAnother)):
		return false
	}
	return (b.bringsSource(o) || newReach(b.files, o.path).read[o.file]) && !b.isAppliedByAnother(o)
}

// bringsSource tells of a Kustomization whether its source stands in the same file: somebody applies the file by hand to begin.
func (b *beginnings) bringsSource(o fluxObject) bool {
	source, ok := b.sources[[3]string{o.sourceKind, cmp.Or(o.sourceNamespace, o.namespace), o.sourceName}]
	return ok && source.file == o.file
}

// isAppliedByAnother tells whether a Kustomization or a FluxInstance that applies another folder applies this Kustomization, too.
func (b *beginnings) isAppliedByAnother(o fluxObject) bool {
	return slices.ContainsFunc(b.objects, func(by fluxObject) bool {
		if by.kind == "GitRepository" || by.path == "" || by.path == o.path || by.pathless || by.remote {
			return false
		}
		if b.reached[by.path] == nil {
			b.reached[by.path] = newReach(b.files, by.path)
		}
		return b.reached[by.path].read[o.file]
	})
}

// inArtifact is the folder of the repo for a path in the artifact that Flux fetches. If the repo has no such folder, the artifact may be
// made of one of its folders. If that is not clear, it is the path itself.
func (b *beginnings) inArtifact(dir string) string {
	if dir == "" || dir == "." || isFolder(b.files, dir) {
		return dir
	}
	var found []string
	_ = fs.WalkDir(b.files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || !entry.IsDir():
			return nil //nolint:nilerr // what cannot be listed has nothing
		case name != "." && strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules":
			return fs.SkipDir
		case strings.HasSuffix(name, "/"+dir):
			found = append(found, name)
		}
		return nil
	})
	if len(found) != 1 {
		return dir
	}
	return found[0]
}

// addUnapplied adds the folders with Kustomizations that nothing in the repo applies.
func (b *beginnings) addUnapplied() {
	applied := newReach(b.files)
	for _, o := range b.objects {
		if o.kind == "Kustomization" && o.path != "" && o.path != "." {
			applied.folder(o.path)
		}
	}
	substituted := map[string]bool{} // files whose variables only a Kustomization that applies them has
	for _, o := range b.objects {
		substituted[o.file] = substituted[o.file] || strings.Contains(o.path, "${")
	}
	var left []fluxObject
	for _, o := range b.objects {
		if o.kind == "Kustomization" && !applied.read[o.file] && !substituted[o.file] {
			left = append(left, o)
		}
	}
	takesIn := map[string]*reach{} // by the folder of a Kustomization that is left: what the kustomization.yaml there reads
	for _, o := range left {
		if dir := path.Dir(o.file); takesIn[dir] == nil && isKustomized(b.files, dir) {
			takesIn[dir] = newReach(b.files, dir)
		}
	}
	for _, o := range left {
		dir := path.Dir(o.file)
		within := false
		for other, r := range takesIn {
			within = within || other != dir && r.read[o.file]
		}
		if !within {
			b.add(o, dir)
		}
	}
}

// named are the roots by their paths, each with a name of its own.
func (b *beginnings) named(versions map[string]string) []Root {
	roots := make([]Root, 0, len(b.byPath))
	taken := map[string]bool{}
	for _, r := range b.byPath {
		roots = append(roots, r)
	}
	slices.SortFunc(roots, func(a, b Root) int { return cmp.Compare(a.Path, b.Path) })
	for i := range roots {
		r := &roots[i]
		for at, version := range versions {
			if lies(at, r.Path) {
				r.Flux = version
			}
		}
		base := rootName(r.Path)
		r.Name = base
		for n := 2; taken[r.Name]; n++ {
			r.Name = fmt.Sprintf("%.36s-%d", base, n)
		}
		taken[r.Name] = true
	}
	return roots
}

// appliesItself tells of a Kustomization that it applies the folder that it is in.
func (o fluxObject) appliesItself() bool {
	return o.kind == "Kustomization" && !o.remote && lies(o.file, o.path)
}

// bootstrapFile is the name that `flux bootstrap` gives the file.
const bootstrapFile = "gotk-sync.yaml"

// isBootstrap tells whether a Kustomization stands in the file that `flux bootstrap` writes for it.
func (o fluxObject) isBootstrap() bool {
	return path.Base(o.file) == bootstrapFile || path.Base(path.Dir(o.file)) == layout.FluxDir
}

// isOfAnother tells whether a Kustomization has another source than the one with which a cluster's Flux begins. The whole that it applies
// is then the whole of its own source, such as a tenant's repo.
func (o fluxObject) isOfAnother(root fluxObject) bool {
	return root.appliesItself() && root.path != "." &&
		[3]string{o.sourceKind, cmp.Or(o.sourceNamespace, o.namespace), o.sourceName} != [3]string{
			root.sourceKind,
			cmp.Or(root.sourceNamespace, root.namespace), root.sourceName,
		}
}

// rootName is the name of the cluster with that root. For a folder in clusters/, as in the documentation of flux bootstrap, it is only
// the folder's name.
func rootName(dir string) string {
	return Label(strings.TrimPrefix(dir, "clusters/"), "flux")
}

// Label makes a DNS label of at most 40 characters from a text. It returns otherwise if the text has no usable character.
func Label(text, otherwise string) string {
	label := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, text)
	label = strings.Trim(label, "-")
	return cmp.Or(strings.Trim(label[:min(len(label), 40)], "-"), otherwise)
}

// lies tells whether a file is in a folder, or below.
func lies(file, dir string) bool {
	return dir != "" && (dir == "." || strings.HasPrefix(file, dir+"/"))
}

func isFolder(files fs.FS, dir string) bool {
	info, err := fs.Stat(files, dir)
	return err == nil && info.IsDir()
}

func isKustomized(files fs.FS, dir string) bool {
	for _, name := range layout.KustomizationNames() {
		if _, err := fs.Stat(files, path.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}
